"""Level and power of the test of calibration, and coverage of intervals of SmoothECE.

Worlds have a known truth: confidences with a log-odds of their own, and labels drawn from the
true chances, which differ from the confidences as a law of the table below states. The true
SmoothECE is that of a million answers. Printed are, in per cent of the worlds,

1. how often p_calibrated is at most 5 %, with SmoothECE and its noise floor;
2. how often 95 % intervals of SmoothECE contain the truth: percentiles, basic (mirrored at the
   value), and percentiles with the noise floor subtracted;
3. how often the percentile interval of a difference contains the true difference, and how
   often it leaves out zero: between two estimators of the same answers, and between two
   checkpoints with labels that are drawn apart;
4. how often p_calibrated of a study of four checkpoints is at most 5 %, on all questions and on
   contrast sets, where each value is a mean over checkpoints or pairs.

Run in the root of the repository; the tables are in docs/validation.md:

    python -m benchmarks.calibration_tests --worlds 1000 --questions 400
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.checkpoint_tests import GAIN, simulate_answers
from persistcal.evaluation.aligned import align
from persistcal.evaluation.reliability import compare_with_floor, noise_floors
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.smooth_ece import Labellings, smooth_ece

Array = NDArray[np.float64]
N_LARGE = 1_000_000  # answers that give the true SmoothECE
N_DRAWS, N_REPLICATES = 200, 300
# stated log-odds of a true log-odds
LAWS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda logit: logit,
    "calibrated, blunt": lambda logit: logit,  # with the mean chance of both halves
    "slightly sharp": lambda logit: 1.25 * logit,
    "sharp": lambda logit: 2 * logit,
    "overconfident": lambda logit: logit + 0.5,
    "very overconfident": lambda logit: 0.3 * logit + 2,
}


def simulate(rng: np.random.Generator, n: int) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Return the confidences of each law in the same answers, and the labels."""
    logit = 1.5 * rng.normal(size=n)
    chance = expit(logit)
    stated = {name: expit(law(logit)) for name, law in LAWS.items()}
    # depends only on the sign of the log-odds; 0.7342 is the mean chance of the upper half
    stated["calibrated, blunt"] = np.where(logit > 0, 0.7342, 1 - 0.7342)
    return stated, rng.random(n) < chance


@lru_cache(maxsize=1)
def true_values() -> dict[str, float]:
    """Return the SmoothECE of each law."""
    stated, correct = simulate(np.random.default_rng(1), N_LARGE)
    return {name: float(smooth_ece(p, correct)) for name, p in stated.items()}


class LawInWorld(NamedTuple):
    """SmoothECE, its bootstrap replicates at two checkpoints, and calibrated draws."""

    value: float
    replicates: Array
    at_other_checkpoint: Array
    drawn: Array


World = dict[str, LawInWorld]


def simulate_world(seed: int, n: int) -> World:
    """Compute the values of each law in one world."""
    rng = np.random.default_rng([seed, n])
    stated, correct = simulate(rng, n)
    other_correct = rng.random(n) < stated["calibrated"]
    counts = rng.multinomial(n, np.full(n, 1 / n), N_REPLICATES).T.astype(np.uint8)
    uniform = rng.random((n, N_DRAWS))
    return {
        name: LawInWorld(
            float(smooth_ece(p, correct)),
            smooth_ece(p, correct, weights=counts),
            smooth_ece(p, other_correct, weights=counts),
            Labellings(p).smooth_ece(uniform < p[:, None]),
        )
        for name, p in stated.items()
    }


def interval_ends(value: float, replicates: Array, floor: float) -> dict[str, Array]:
    """Return the ends of each kind of 95 % interval."""
    ends = np.quantile(replicates, [0.025, 0.975])
    return {
        "percentile": ends,
        "basic": np.maximum(0, 2 * value - ends[::-1]),
        "floor subtracted": np.maximum(0, ends - floor),
    }


def single_table(worlds: list[World]) -> pd.DataFrame:
    """Return the first two tables, a row per law."""
    rows = {}
    for name, truth in true_values().items():
        values = [world[name] for world in worlds]
        tests = [compare_with_floor(law.value, law.drawn) for law in values]
        row = {
            "truth": truth,
            "value": np.mean([law.value for law in values]),
            "floor": np.mean([test.noise_floor for test in tests]),
            "p <= 5 %": 100 * np.mean([test.p_calibrated <= 0.05 for test in tests]),
        }
        inside: dict[str, list[bool]] = {}
        for law, test in zip(values, tests, strict=True):
            kinds = interval_ends(law.value, law.replicates, test.noise_floor)
            for kind, (low, high) in kinds.items():
                # the truth of a calibrated estimator is the narrowest bandwidth, not 0
                inside.setdefault(kind, []).append(low <= max(truth, 0.002) and truth <= high)
        rows[name] = row | {kind: 100 * np.mean(hits) for kind, hits in inside.items()}
    return pd.DataFrame(rows).T


def difference_table(worlds: list[World]) -> pd.DataFrame:
    """Return the third table, a row per pair of laws."""
    truth, rows = true_values(), {}
    for first, other in product(LAWS, LAWS):
        if first > other:
            continue
        true = truth[other] - truth[first]
        row = {"true difference": true}
        for kind in ("estimators", "checkpoints"):
            second = "replicates" if kind == "estimators" else "at_other_checkpoint"
            drawn = [
                getattr(world[other], second) - world[first].replicates for world in worlds
            ]
            low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
            row[f"{kind}: coverage"] = 100 * np.mean((low <= true) & (true <= high))
            row[f"{kind}: leaves out 0"] = 100 * np.mean((low > 0) | (high < 0))
        rows[first, other] = row
    return pd.DataFrame(rows).T


def study_table(n_worlds: int, n: int) -> pd.DataFrame:
    """Return the fourth table, a row per estimator of `benchmarks.checkpoint_tests`."""
    tables = []
    for world in range(n_worlds):
        answers = simulate_answers(np.random.default_rng([world, n]), n, GAIN)
        rows = [
            pd.DataFrame(
                {
                    "checkpoint": checkpoint,
                    "question_id": answers.questions,
                    "train_dataset": "quiz",
                    "estimator": series.estimator,
                    "seed": 0,
                    "confidence": run[k],
                    "correct": answers.correct[k],
                }
            )
            for series, run in answers.confidence.items()
            for k, checkpoint in enumerate(answers.checkpoints)
        ]
        settings = EvaluationSettings(min_contrast=1, conditionings=["odds"], seed=world)
        data = align(pd.concat(rows), answers.checkpoints, settings)
        tables.append(noise_floors(data, settings, n_draws=N_DRAWS))
    tests = pd.concat(tables)
    is_found = 100 * (tests["p_calibrated"] <= 0.05)
    return is_found.groupby([tests["estimator"], tests["scope"]], sort=False).mean().unstack()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--questions", type=int, nargs="+", default=[100, 400, 2000])
    size = parser.parse_args()
    for n in size.questions:
        worlds = [simulate_world(seed, n) for seed in range(size.worlds)]
        print(f"\n{n} questions, {size.worlds} worlds")
        print(single_table(worlds).round(3).to_string())
        print(difference_table(worlds).round(3).to_string(), flush=True)
        print(study_table(size.worlds, n).round(1).to_string(), flush=True)


if __name__ == "__main__":
    main()

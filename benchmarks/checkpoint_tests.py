"""Level of the tests between checkpoints, in simulated worlds with a known truth.

In each world four checkpoints answer the same questions. They are exchangeable: no metric
differs between them but by chance, so a test at 5 % should find a difference in 5 % of worlds.
Tested are the first two checkpoints, the trend over all four, and the first checkpoint against
that of another model. Confidences are calibrated, overconfident, or the same for all answers.
In further worlds each checkpoint answers more questions correctly than the one before. There
the interval should contain the true difference in 95 % of worlds.

Run in the root of the repository; the table is in docs/validation.md:

    python -m benchmarks.checkpoint_tests --worlds 1000 --questions 400 --replicates 300
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.states import compare_checkpoints, join
from persistcal.evaluation.weighted import auc, squared_error

Array = NDArray[np.float64]
N_CHECKPOINTS = 4
N_LARGE = 400_000  # questions that give the true metrics
GAIN = 0.5  # log-odds of a right answer that each further checkpoint gains
CONFIDENCES: dict[str, Callable[[Array], Array]] = {
    "calibrated": expit,
    "overconfident": lambda logit: expit(0.3 * logit + 2),
    "constant": lambda logit: np.full(logit.shape, 0.8),
}
METRICS = ("auc", "brier")  # SmoothECE has no interval, see benchmarks.calibration_tests


def simulate_answers(rng: np.random.Generator, n_questions: int, gain: float) -> AnswerArrays:
    """Return answers of checkpoints with the same law, or each with `gain` more than before.

    The log-odds of a right answer are the sum of the question's ease, which all checkpoints
    share, and of noise, which differs; half of its variance is shared.
    """
    shape = N_CHECKPOINTS, n_questions
    logit = 1.5 * (rng.normal(size=n_questions) + rng.normal(size=shape))
    logit += gain * np.arange(N_CHECKPOINTS)[:, None]
    return AnswerArrays(
        tuple("abcd"),
        np.arange(n_questions).astype(str).astype(object),
        (rng.random(shape) < expit(logit)).astype(np.int8),
        {Series("quiz", name, 0): stated(logit) for name, stated in CONFIDENCES.items()},
        np.arange(n_questions),
    )


def true_differences(gain: float) -> dict[tuple[str, str], float]:
    """Return the true difference of the first two checkpoints by estimator and metric."""
    answers = simulate_answers(np.random.default_rng(1), N_LARGE, gain)
    values = {}
    for series, run in answers.confidence.items():
        for name, measure in {
            "auc": auc,
            "brier": lambda p, y: squared_error(p, y).mean(),
        }.items():
            first, second = (float(measure(run[k], answers.correct[k])) for k in (0, 1))
            values[series.estimator, name] = second - first
    return values


def simulate_tests(
    n_worlds: int, n_questions: int, n_replicates: int, *, gain: float = 0.0, seed: int = 0
) -> Iterator[pd.DataFrame]:
    """Yield the tests of each world: comparison, estimator, metric, ends and p-value."""
    for world in range(n_worlds):
        rng = np.random.default_rng([seed, world])
        answers = simulate_answers(rng, n_questions, gain)
        settings = {"n_replicates": n_replicates, "seed": world}
        pair, trend = compare_checkpoints(answers, [(0, 1)], EvaluationSettings(**settings))
        second = simulate_answers(rng, n_questions, gain)
        two_models, _ = compare_checkpoints(
            join(answers, second),
            [(0, 1)],
            EvaluationSettings(**settings),
        )
        tests = {"checkpoints": pair, "trend": trend, "models": two_models}
        values = pd.concat(table.assign(comparison=name) for name, table in tests.items())
        yield values[(values["seed"] == "mean") & values["metric"].isin(METRICS)]


def levels(tests: pd.DataFrame) -> pd.DataFrame:
    """Return by comparison, estimator and metric the share of p-values up to 5 %."""
    values = tests.assign(found=tests["p_value"] <= 0.05, defined=tests["p_value"].notna())
    return values.groupby(["comparison", "estimator", "metric"], sort=False)[
        ["found", "defined"]
    ].mean()


def coverage(tests: pd.DataFrame, truth: dict[tuple[str, str], float]) -> pd.Series:
    """Return by estimator and metric how many intervals contain the true difference."""
    pairs = tests[(tests["comparison"] == "checkpoints") & tests["lower_2_5pct"].notna()]
    true = [truth[key] for key in zip(pairs["estimator"], pairs["metric"], strict=True)]
    inside = (pairs["lower_2_5pct"] <= true) & (pairs["upper_97_5pct"] >= true)
    return inside.groupby([pairs["estimator"], pairs["metric"]], sort=False).mean()


def main() -> None:
    """Print both tables in per cent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--replicates", type=int, default=300)
    size = parser.parse_args()
    numbers = size.worlds, size.questions, size.replicates
    equal = levels(pd.concat(simulate_tests(*numbers)))
    print((100 * equal).round(1).unstack("metric").to_string(), flush=True)
    better = coverage(pd.concat(simulate_tests(*numbers, gain=GAIN)), true_differences(GAIN))
    print((100 * better).round(1).unstack("metric").to_string())


if __name__ == "__main__":
    main()

"""Coverage of linear replicates, which replace resampling in large studies.

A world has two checkpoints, and one confidence that follows the state of a question. Worlds
differ in ties (five levels of confidence), in groups (five questions share most of a state, or
groups have 1 to 40 questions) and in how rare correct answers are. 600,000 questions give the
truth. Metrics are about all answers (full), about the contrast set, and about differences
between the checkpoints. Replicates are linear if the rarer class has at least `--limit`
questions; smaller worlds show why a limit is needed.

    python -m benchmarks.large_studies [--worlds 200] [--replicates 2000] [--limit 0]

prints how often the 95 % interval contains the truth, in per cent of the worlds.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from persistcal.evaluation import bootstrap
from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.bootstrap import Bootstrap
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.knowledge import STATISTICS, sample_knowledge
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.states import compare_states

RUN = Series("quiz", "estimator", 0)
SIZES = (500, 2_000, 6_000, 20_000)
POPULATION = 600_000
WORLDS = {  # accuracy, levels of confidence, sizes of groups
    "plain": (0.5, 0, (1, 1)),
    "ties": (0.5, 5, (1, 1)),
    "groups of 5": (0.5, 0, (5, 5)),
    "groups of 1 to 40": (0.5, 0, (1, 40)),
    "10 % right": (0.1, 0, (1, 1)),
    "10 % right, ties": (0.1, 5, (1, 1)),
    "1 % right": (0.01, 0, (1, 1)),
}
CONTRAST = (
    "auc",
    "brier",
    "delta",
    "delta0",
    "delta_balanced",
    "delta0_balanced",
    "change_auc",
)


def draw_world(name: str, n: int, rng: np.random.Generator) -> AnswerArrays:
    """Draw the answers to `n` questions."""
    accuracy, n_levels, sizes = WORLDS[name]
    drawn = rng.integers(*sizes, size=n, endpoint=True)
    groups = np.repeat(np.arange(n), drawn)[:n]
    shared = 0.8 if sizes[1] > 1 else 0.0

    def noise() -> np.ndarray:
        return shared**0.5 * rng.normal(size=n)[groups] + (1 - shared) ** 0.5 * rng.normal(
            size=n
        )

    earlier = noise()
    states = np.array([earlier, 0.9 * earlier + 0.19**0.5 * noise()])
    limit = norm.isf(accuracy)
    correct = (states + 0.3 * rng.normal(size=states.shape) > limit * 1.09**0.5).astype(np.int8)
    stated = expit(1.5 * (states - limit) + 1.2 * rng.normal(size=states.shape))
    if n_levels:
        stated = (stated * (n_levels - 1)).round() / (n_levels - 1)
    questions = np.arange(n).astype(object)
    return AnswerArrays(("a", "b"), questions, correct, {RUN: stated}, groups)


def measure(
    answers: AnswerArrays, settings: EvaluationSettings
) -> dict[str, tuple[float, ...]]:
    """Return value and interval of each metric."""
    data = Aligned(answers, contrast_sets(answers.correct, answers.checkpoints, settings))
    of = Bootstrap(answers, settings)
    samples = {
        f"full {name}": members
        for name, members in of.apply_full(data).items()
        if name != "smece"
    }
    samples |= {
        f"contrast {name}": members
        for name, members in of.apply(CONTRAST, data.rated()).items()
    }
    samples |= {
        n: members
        for n, members in sample_knowledge(data.rated(), of).items()
        if n in STATISTICS
    }
    ends = {
        name: (sample.value, *sample.interval())
        for name, members in samples.items()
        for sample in members.values()
    }
    states = compare_states({"m": data}, settings, dataset="quiz")[0]
    for row in states[states["seed"].isin(["mean", ""])].itertuples():
        if row.metric not in ("smece", "accuracy"):
            numbers = row.difference, row.lower_2_5pct, row.upper_97_5pct
            ends[f"difference of {row.metric}"] = numbers
    return ends


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--names", nargs="+", default=list(WORLDS))
    args = parser.parse_args()
    bootstrap.LARGE = args.limit
    rows = []
    for name in args.names:
        options = EvaluationSettings(n_replicates=200, min_direction=1)
        truth = measure(draw_world(name, POPULATION, np.random.default_rng(0)), options)
        for n in args.sizes:
            settings = EvaluationSettings(n_replicates=args.replicates, min_direction=1)
            held: dict[str, list[bool]] = {}
            for world in range(args.worlds):
                rng = np.random.default_rng([1, n, world, list(WORLDS).index(name)])
                for metric, (_, low, high) in measure(
                    draw_world(name, n, rng), settings
                ).items():
                    held.setdefault(metric, []).append(low <= truth[metric][0] <= high)
            shares = {metric: 100 * float(np.mean(hits)) for metric, hits in held.items()}
            rows.append({"world": name, "questions": n, **shares})
            print(pd.DataFrame(rows[-1:]).round(1).to_csv(index=False), flush=True)
    print(pd.DataFrame(rows).to_csv(index=False, float_format="%.1f"))


if __name__ == "__main__":
    main()

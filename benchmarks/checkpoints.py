"""Growth of the cost of metrics and replicates with the number of checkpoints.

Made-up predictions of 3 estimators at 2,000 questions: metrics under both conditionings, then
2,000 replicates under odds, of adjacent pairs and of all pairs of checkpoints, in one process
of one thread.
Run `python -m benchmarks.checkpoints` in the root of the repository; with `adjacent` or `all`
and numbers of checkpoints after it, it prints the CPU time of these.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import math
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pandas as pd

from benchmarks.results import Growth, show
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.replicates import replicate_metrics

ESTIMATORS = {"self_consistency": 1.2, "non_oracle": 1.0, "oracle": 0.7}  # and their noise


class GrowthSize(NamedTuple):
    """Sizes that do not grow."""

    n_questions: int
    n_replicates: int
    min_contrast: int


FULL = GrowthSize(n_questions=2000, n_replicates=2000, min_contrast=100)


def made_up_predictions(n_checkpoints: int, n_questions: int) -> pd.DataFrame:
    """Predictions at checkpoints between which knowledge is slowly gained and lost."""
    rng = np.random.default_rng(0)
    knowledge = rng.normal(size=n_questions) * 3
    drift = rng.normal(size=n_questions)
    frames = []
    for k in range(n_checkpoints):
        drift = 0.9 * drift + math.sqrt(1 - 0.9**2) * rng.normal(size=n_questions)
        logit = knowledge + drift + 0.9 + k / n_checkpoints
        correct = rng.logistic(size=n_questions) * 0.5 < logit
        for estimator, noise in ESTIMATORS.items():
            felt = logit + noise * rng.normal(size=n_questions)
            frames.append(
                pd.DataFrame(
                    {
                        "checkpoint": f"step{k}",
                        "question_id": [f"q{i:05d}" for i in range(n_questions)],
                        "train_dataset": "quiz",
                        "estimator": estimator,
                        "seed": 0,
                        "confidence": 1 / (1 + np.exp(-0.8 * felt)),
                        "correct": correct,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def cost(n_checkpoints: int, pairs: Literal["adjacent", "all"], size: GrowthSize) -> float:
    """Return the CPU time of metrics and replicates."""
    predictions = made_up_predictions(n_checkpoints, size.n_questions)
    checkpoints = [f"step{k}" for k in range(n_checkpoints)]
    how: dict[str, Any] = {"min_contrast": size.min_contrast, "pairs": pairs}
    start = time.process_time()
    evaluate(predictions, checkpoints, **how)
    replicate_metrics(
        predictions,
        checkpoints,
        n_replicates=size.n_replicates,
        conditionings=["odds"],
        **how,
    )
    return time.process_time() - start


def growth(
    pairs: Literal["adjacent", "all"], numbers: Sequence[int], size: GrowthSize
) -> Growth:
    """Return how the cost grows with checkpoints, or with pairs where there are all."""
    spent = [cost(n, pairs, size) for n in numbers]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    how = (
        f"Metrics and {size.n_replicates} replicates of {len(ESTIMATORS)} estimators at "
        f"{size.n_questions} questions, {pairs} pairs; peak {peak:.1f} GB."
    )
    if pairs == "adjacent":
        return Growth("checkpoints", list(numbers), spent, how)
    return Growth("pairs", [n * (n - 1) // 2 for n in numbers], spent, how)


def measure(quick: bool) -> Iterator[Growth]:
    """Yield both."""
    if quick:
        small = GrowthSize(n_questions=60, n_replicates=10, min_contrast=1)
        yield growth("adjacent", [3, 6], small)
        yield growth("all", [3, 4], small)
    else:
        yield growth("adjacent", [25, 50, 100], FULL)
        yield growth("all", [10, 20], FULL)


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if word in ("adjacent", "all")]
    if named:
        numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
        for which in named:
            for number in numbers or [100]:
                chosen = cast(Literal["adjacent", "all"], which)
                print(f"{number} checkpoints, {which}: {cost(number, chosen, FULL):.0f} s")
    else:
        show(measure)

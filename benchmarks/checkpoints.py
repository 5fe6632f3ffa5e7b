"""How the cost of metrics and replicates grows with the number of checkpoints.

Made-up predictions of 3 estimators at 2,000 questions: metrics under both conditionings, then
2,000 replicates under odds, of adjacent pairs or of all pairs of checkpoints, in one process of
one thread. Prints CPU time and peak memory, and the exponent: the slope of log time over log
pairs between the two largest sizes.
Run `python -m benchmarks.checkpoints [adjacent|all] [n_checkpoints ...]` in the root of the
repository.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import math
import resource
import sys
import time
from typing import Literal, cast

import numpy as np
import pandas as pd

from persistcal.evaluation.contrast import choose_pairs
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.significance import replicate_metrics

N_QUESTIONS, N_REPLICATES, MIN_CONTRAST = 2000, 2000, 100
ESTIMATORS = {"self_consistency": 1.2, "non_oracle": 1.0, "oracle": 0.7}  # and their noise


def made_up_predictions(n_checkpoints: int) -> pd.DataFrame:
    """Predictions at checkpoints between which knowledge is slowly gained and lost."""
    rng = np.random.default_rng(0)
    knowledge = rng.normal(size=N_QUESTIONS) * 3
    drift = rng.normal(size=N_QUESTIONS)
    frames = []
    for k in range(n_checkpoints):
        drift = 0.9 * drift + math.sqrt(1 - 0.9**2) * rng.normal(size=N_QUESTIONS)
        logit = knowledge + drift + 0.9 + k / n_checkpoints
        correct = rng.logistic(size=N_QUESTIONS) * 0.5 < logit
        for estimator, noise in ESTIMATORS.items():
            felt = logit + noise * rng.normal(size=N_QUESTIONS)
            frames.append(
                pd.DataFrame(
                    {
                        "checkpoint": f"step{k}",
                        "question_id": [f"q{i:05d}" for i in range(N_QUESTIONS)],
                        "train_dataset": "quiz",
                        "estimator": estimator,
                        "seed": 0,
                        "confidence": 1 / (1 + np.exp(-0.8 * felt)),
                        "correct": correct,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    """Print the time of each size, and the exponent."""
    pairs = cast(Literal["adjacent", "all"], sys.argv[1] if len(sys.argv) > 1 else "adjacent")
    usual = {"adjacent": [25, 50, 100], "all": [10, 20, 40]}[pairs]
    sizes = [int(size) for size in sys.argv[2:]] or usual
    seconds, n_pairs = [], []
    for size in sizes:
        predictions = made_up_predictions(size)
        checkpoints = [f"step{k}" for k in range(size)]
        start = time.process_time()
        evaluate(predictions, checkpoints, min_contrast=MIN_CONTRAST, pairs=pairs)
        between = time.process_time()
        replicate_metrics(
            predictions,
            checkpoints,
            min_contrast=MIN_CONTRAST,
            n_replicates=N_REPLICATES,
            conditionings=["odds"],
            pairs=pairs,
        )
        end = time.process_time()
        seconds.append(end - start)
        n_pairs.append(len(choose_pairs(pairs, checkpoints)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{size} checkpoints, {n_pairs[-1]} pairs: {between - start:.0f} s metrics, "
            f"{end - between:.0f} s replicates, peak {peak:.2f} GB",
            flush=True,
        )
    if len(sizes) > 1:
        exponent = math.log(seconds[-1] / seconds[-2]) / math.log(n_pairs[-1] / n_pairs[-2])
        print(f"exponent in pairs: {exponent:.2f}")


if __name__ == "__main__":
    main()

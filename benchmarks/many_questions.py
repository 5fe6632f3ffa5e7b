"""Memory of resampling at a million questions, and its time per replicate.

Made-up predictions of one estimator at two checkpoints, its metrics under odds, in one process
of one thread. The answers come from a parquet file as in the workflow, so that its size can be
compared with the memory that a job takes.
Run `python -m benchmarks.many_questions [n_questions [n_replicates]]` in the root of the
repository; all 10,000 replicates of a million questions take about twenty minutes.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal.evaluation.replicates import digest_of_draws, replicate_metrics
from persistcal.store import artifacts

CHECKPOINTS = ["early", "late"]
N_ALL = 10_000


def write_predictions(path: Path, n_questions: int) -> None:
    """Write what one estimator says of the answers of two checkpoints."""
    rng = np.random.default_rng(0)
    knowledge = rng.normal(size=n_questions) * 3
    frames = []
    for k, checkpoint in enumerate(CHECKPOINTS):
        logit = knowledge + 0.9 + 0.3 * k + rng.normal(size=n_questions) * 0.8
        frames.append(
            pd.DataFrame(
                {
                    "checkpoint": checkpoint,
                    "question_id": [f"q{i:07d}" for i in range(n_questions)],
                    "train_dataset": "quiz",
                    "estimator": "oracle",
                    "seed": 0,
                    "confidence": 1 / (1 + np.exp(-logit - rng.normal(size=n_questions))),
                    "correct": rng.logistic(size=n_questions) * 0.5 < logit,
                }
            )
        )
    artifacts.write(pd.concat(frames, ignore_index=True), path, artifacts.PREDICTIONS)


def peak() -> float:
    """Return the most memory that this process has taken, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Print memory and time."""
    n_questions, n_replicates = (
        int(sys.argv[i]) if len(sys.argv) > i else usual
        for i, usual in ((1, 1_000_000), (2, N_ALL))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.parquet")
        if not os.fork():  # another process, whose memory does not count
            write_predictions(path, n_questions)
            os._exit(0)
        os.wait()
        megabytes = path.stat().st_size / 1e6
        predictions = artifacts.read(path, artifacts.PREDICTIONS)
        print(f"a file of {megabytes:.0f} MB; {peak():.2f} GB when it is read", flush=True)
        start = time.process_time()
        how = {"min_contrast": 1, "n_replicates": n_replicates, "seed": 0, "pairs": "all"}
        replicates = replicate_metrics(predictions, CHECKPOINTS, conditionings=["odds"], **how)
        digest_of_draws(predictions, CHECKPOINTS, **how)
        taken = time.process_time() - start
    undefined = sum(np.isnan(values).any() for values in replicates.replicated.values())
    print(
        f"{n_questions} questions, {n_replicates} replicates: {taken:.0f} s, "
        f"peak {peak():.2f} GB"
    )
    print(f"{N_ALL} replicates: {taken * N_ALL / n_replicates / 60:.0f} minutes of CPU time")
    print(f"{undefined} metrics are undefined")


if __name__ == "__main__":
    main()

"""How long the significance tests of the main table take, at the paper's size.

Made-up predictions: 6 model x dataset blocks of 4,960 questions at 4 checkpoints
(6 contrast sets), 5 estimators of which 2 have 3 seeds, all ten metrics, 10,000
replicates; one block at a time in each of 2 processes of one thread. Then the
obvious way, on one replicate: repeat its rows and call scikit-learn and relplot.
Run `python -m benchmarks.bootstrap` in the root of the repository.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported, here and in the workers

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
import relplot
from sklearn.metrics import brier_score_loss, roc_auc_score

from persistcal.evaluation import significance
from persistcal.evaluation.arrange import arrange
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.draws import draw_sequences, take
from persistcal.evaluation.evaluate import prepare

N_BLOCKS, N_PROCESSES, N_REPLICATES = 6, 2, 10_000
N_QUESTIONS, MIN_CONTRAST = 4960, 500
CHECKPOINTS = ["40%", "50%", "90%", "100%"]
SEEDS = {
    "end_correct": [0],
    "self_consistency": [0],
    "self_consistency_posthoc": [0],
    "non_oracle": [17, 18, 19],
    "oracle": [17, 18, 19],
}
NOISE = {
    "self_consistency": 1.3,
    "self_consistency_posthoc": 1.3,
    "non_oracle": 1.1,
    "oracle": 0.9,
}
SHARPNESS = {
    "self_consistency": 0.6,
    "self_consistency_posthoc": 1.1,
    "non_oracle": 0.9,
    "oracle": 1.2,
}


def made_up_predictions(seed: int) -> pd.DataFrame:
    """Predictions of one block, with contrast sets of about 700 questions."""
    rng = np.random.default_rng(seed)
    knowledge = rng.normal(size=N_QUESTIONS) * 3
    frames = []
    for k, checkpoint in enumerate(CHECKPOINTS):
        logit = knowledge + 0.9 + 0.3 * k + rng.normal(size=N_QUESTIONS) * 0.8
        correct = rng.logistic(size=N_QUESTIONS) * 0.5 < logit
        for estimator, seeds in SEEDS.items():
            for s in seeds:
                if estimator == "end_correct":
                    confidence = np.full(N_QUESTIONS, k / (len(CHECKPOINTS) - 1))
                else:
                    felt = logit + NOISE[estimator] * rng.normal(size=N_QUESTIONS)
                    confidence = 1 / (1 + np.exp(-SHARPNESS[estimator] * felt))
                frames.append(
                    pd.DataFrame(
                        {
                            "checkpoint": checkpoint,
                            "question_id": [f"q{i:05d}" for i in range(N_QUESTIONS)],
                            "train_dataset": "quiz",
                            "estimator": estimator,
                            "seed": s,
                            "confidence": confidence,
                            "correct": correct,
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True)


class Cost(NamedTuple):
    """What a process has used when it has tested a block: peak memory in MB, and CPU time."""

    process: int
    megabytes: float
    cpu_seconds: float
    n_tests: int


def significance_of(seed: int) -> Cost:
    """Test one block."""
    tests = significance.compare_blocks(
        significance.replicate_metrics(
            made_up_predictions(seed),
            CHECKPOINTS,
            min_contrast=MIN_CONTRAST,
            n_replicates=N_REPLICATES,
            conditionings=["odds"],
        ),
        {"main": list(SEEDS)},
    )
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    return Cost(os.getpid(), used.ru_maxrss / 1024, cpu, len(tests))


def obvious_replicate() -> float:
    """Return the CPU time that the metrics of one replicate of one block take, row by row."""
    answers = arrange(made_up_predictions(0), CHECKPOINTS)
    pairs = [
        pair for pair in contrast_sets(answers.correct, min_contrast=MIN_CONTRAST) if pair.kept
    ]
    data = prepare(answers, pairs, ["odds"])
    sequences = draw_sequences(N_QUESTIONS, range(1), seed=0, reach=N_QUESTIONS)
    full, contrast = (
        [
            np.repeat(np.arange(len(part.questions)), take(part, sequences)[:, 0])
            for part in parts
        ]
        for parts in (data.full, data.contrast)
    )
    start = time.process_time()
    for number, of in enumerate(data.on_full):
        stated = [
            of.confidence[rows][at] for rows, at in zip(of.checkpoints, full, strict=True)
        ]
        labels = [of.correct[rows][at] for rows, at in zip(of.checkpoints, full, strict=True)]
        roc_auc_score(np.concatenate(labels), np.concatenate(stated))
        brier_score_loss(np.concatenate(labels), np.concatenate(stated))
        for p, z in zip(stated, labels, strict=True):
            relplot.smECE(p, z)
        for by_run, at in zip(data.on_contrast["odds"], contrast, strict=True):
            said = by_run[number]
            earlier, later, improved = said.earlier[at], said.later[at], said.improvement[at]
            label = np.concatenate([~improved, improved]).astype(int)
            roc_auc_score(label, np.concatenate([earlier, later]))
            brier_score_loss(label, np.concatenate([earlier, later]))
            relplot.smECE(earlier, 1.0 - improved)
            for values in (said.gap[at], said.sign[at]):
                (values.mean(), values[improved].mean(), values[~improved].mean())
    return time.process_time() - start


def main() -> None:
    """Print wall time, peak memory and the ratio to the obvious way."""
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(N_PROCESSES, mp_context=context) as pool:
        costs = list(pool.map(significance_of, range(N_BLOCKS)))
    wall = time.perf_counter() - start
    last = {cost.process: cost for cost in costs}.values()  # they grow over a process's life
    peak = sum(cost.megabytes for cost in last)
    peak += resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = sum(cost.cpu_seconds for cost in last)
    print(f"{N_BLOCKS} blocks of {costs[0].n_tests} tests, {N_REPLICATES} replicates:")
    print(
        f"  {wall:.0f} s on {N_PROCESSES} cores, {peak / 1024:.2f} GB, {cpu:.0f} s of CPU time"
    )
    each = float(np.median([obvious_replicate() for _ in range(3)]))
    obvious = each * N_REPLICATES * N_BLOCKS
    print(f"the obvious way, {each:.2f} s of CPU time a replicate and block:")
    print(f"  {obvious / 3600:.1f} hours of CPU time, {obvious / cpu:.0f} times as much")


if __name__ == "__main__":
    main()

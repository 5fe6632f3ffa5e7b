"""Time of the main table's significance tests, at the paper's size.

Made-up predictions: 6 model x dataset blocks of 4,960 questions at 4 checkpoints
(6 contrast sets), 5 estimators of which 2 have 3 seeds, all eleven metrics, 10,000
replicates; one block at a time in each of 2 processes of one thread. Then the obvious way,
on one replicate at a time in each of these: repeat its rows and call scikit-learn and relplot.
Run `python -m benchmarks.bootstrap` in the root of the repository.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported, here and in the workers

import multiprocessing
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import relplot
from sklearn.metrics import brier_score_loss, roc_auc_score

from benchmarks.results import Result, show
from persistcal.evaluation import significance
from persistcal.evaluation.aligned import align
from persistcal.evaluation.draws import draw_sequences
from persistcal.evaluation.evaluate import metrics_under
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.paper_draws import count_draws
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.settings import EvaluationSettings

N_PROCESSES = 2


class SignificanceSize(NamedTuple):
    """Size of the tested study."""

    n_blocks: int
    n_questions: int
    min_contrast: int
    n_replicates: int


PAPER = SignificanceSize(n_blocks=6, n_questions=4960, min_contrast=500, n_replicates=10_000)
SMALL = SignificanceSize(n_blocks=1, n_questions=300, min_contrast=1, n_replicates=20)
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


def made_up_predictions(seed: int, n_questions: int) -> pd.DataFrame:
    """Predictions of one block; contrast sets are about a seventh of the questions."""
    rng = np.random.default_rng(seed)
    knowledge = rng.normal(size=n_questions) * 3
    frames = []
    for k, checkpoint in enumerate(CHECKPOINTS):
        logit = knowledge + 0.9 + 0.3 * k + rng.normal(size=n_questions) * 0.8
        correct = rng.logistic(size=n_questions) * 0.5 < logit
        for estimator, seeds in SEEDS.items():
            for s in seeds:
                if estimator == "end_correct":
                    confidence = np.full(n_questions, k / (len(CHECKPOINTS) - 1))
                else:
                    felt = logit + NOISE[estimator] * rng.normal(size=n_questions)
                    confidence = 1 / (1 + np.exp(-SHARPNESS[estimator] * felt))
                frames.append(
                    pd.DataFrame(
                        {
                            "checkpoint": checkpoint,
                            "question_id": [f"q{i:05d}" for i in range(n_questions)],
                            "train_dataset": "quiz",
                            "estimator": estimator,
                            "seed": s,
                            "confidence": confidence,
                            "correct": correct,
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True)


class Resources(NamedTuple):
    """Resources of a process after it tested a block: peak memory in MB, and CPU time."""

    process: int
    megabytes: float
    cpu_seconds: float
    n_tests: int


def significance_of(seed: int, size: SignificanceSize) -> Resources:
    """Test one block."""
    settings = EvaluationSettings(
        min_contrast=size.min_contrast,
        n_replicates=size.n_replicates,
        conditionings=["odds"],
    )
    data = align(made_up_predictions(seed, size.n_questions), CHECKPOINTS, settings)
    tests = significance.compare_blocks(replicate(data, settings), {"main": list(SEEDS)})
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    return Resources(os.getpid(), used.ru_maxrss / 1024, cpu, len(tests))


def obvious_replicate(seed: int, size: SignificanceSize) -> tuple[float, float]:
    """Return the CPU time of one replicate of one block, row by row, and how far it differs."""
    predictions = made_up_predictions(seed, size.n_questions)
    settings = EvaluationSettings(min_contrast=size.min_contrast)
    data = align(predictions, CHECKPOINTS, settings)
    sequences = draw_sequences(size.n_questions, range(1), seed=0, window=size.n_questions)
    full, contrast = (
        [
            np.repeat(np.arange(len(part.questions)), count_draws(part, sequences)[:, 0])
            for part in parts
        ]
        for parts in (data.parts, [pair.part for pair in data.kept])
    )
    metrics: dict[MetricKey, list[float]] = {}
    start = time.process_time()
    for number, run in enumerate(data.on_full):
        stated = [
            run.confidence[rows][drawn_rows]
            for rows, drawn_rows in zip(run.checkpoints, full, strict=True)
        ]
        labels = [
            run.correct[rows][drawn_rows]
            for rows, drawn_rows in zip(run.checkpoints, full, strict=True)
        ]
        confidences, right = np.concatenate(stated), np.concatenate(labels)
        measured = {
            ("full", "auc"): roc_auc_score(right, confidences),
            ("full", "brier"): brier_score_loss(right, confidences),
            ("full", "smece"): np.mean(
                [relplot.smECE(p, z) for p, z in zip(stated, labels, strict=True)]
            ),
        }
        by_set: dict[str, list[float]] = {}
        for rated, at in zip(data.rated(), contrast, strict=True):
            conditioned = rated.runs[number]
            earlier, later, improved = (
                conditioned.earlier[at],
                conditioned.later[at],
                conditioned.improvement[at],
            )
            label = np.concatenate([~improved, improved]).astype(int)
            pooled = np.concatenate([earlier, later])
            direction = np.where(improved, 1.0, -1.0)
            gap, sign = (
                direction * (later - earlier),
                direction * np.sign(conditioned.change[at]),
            )
            for metric, value in {
                "auc": roc_auc_score(label, pooled),
                "brier": brier_score_loss(label, pooled),
                "smece": relplot.smECE(earlier, 1.0 - improved),
                "delta": gap.mean(),
                "change_auc": roc_auc_score(improved, conditioned.change[at]),
                "delta_balanced": (gap[improved].mean() + gap[~improved].mean()) / 2,
                "delta0": sign.mean(),
                "delta0_balanced": (sign[improved].mean() + sign[~improved].mean()) / 2,
            }.items():
                by_set.setdefault(metric, []).append(value)
        measured |= {("contrast", metric): np.mean(values) for metric, values in by_set.items()}
        for name, value in measured.items():
            metrics.setdefault(MetricKey("odds", *name), []).append(float(value))
    taken = time.process_time() - start
    fast = metrics_under(partial(count_draws, sequences=sequences), data, ["odds"])
    return taken, max(
        float(np.abs(fast[key][:, 0] - run).max()) for key, run in metrics.items()
    )


def measure(quick: bool) -> Iterator[Result]:
    """Yield the ratio to the obvious way."""
    size = SMALL if quick else PAPER
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(N_PROCESSES, mp_context=context) as pool:
        costs = list(pool.map(partial(significance_of, size=size), range(size.n_blocks)))
        wall = time.perf_counter() - start
        obvious = list(
            pool.map(partial(obvious_replicate, size=size), range(1 if quick else 6))
        )
    last = {cost.process: cost for cost in costs}.values()  # they grow over a process's life
    peak = sum(cost.megabytes for cost in last)
    peak += resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = sum(cost.cpu_seconds for cost in last)
    per_replicate = float(np.median([taken for taken, _ in obvious]))
    yield Result(
        "significance tests",
        "row by row with scikit-learn and relplot",
        cpu,
        per_replicate * size.n_replicates * size.n_blocks / cpu,
        max(difference for _, difference in obvious),
        1e-8,
        how=f"{size.n_blocks} blocks of {costs[0].n_tests} tests, {size.n_replicates} "
        f"replicates: {wall:.0f} s on the clock in {N_PROCESSES} processes, {peak / 1024:.2f} "
        f"GB; the other way takes {per_replicate:.2f} s for one replicate of one block.",
    )


if __name__ == "__main__":
    show(measure)

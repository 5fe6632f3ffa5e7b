"""The data of the page's charts of confidences: reliability, histograms, pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import component
from persistcal.evaluation.prepared import on_contrast_set, once
from persistcal.evaluation.reliability import bootstrap_counts, reliability
from persistcal.evaluation.scopes import CONTRAST_METRICS, compute
from persistcal.report.page.parts import Part

N_BINS = 20
N_REPLICATES = 200
# A curve is drawn where so many answers speak: below, it is the noise of one or two.
LEAST_SUPPORT = 3.0


def calibration(part: Part, *, seed: int) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return by (train_dataset, estimator) a diagram and a histogram per evaluation checkpoint.

    Each has `smece`; the curve as `points`, rows of (confidence, accuracy, lower, upper); and
    `right` and `wrong`, the counts of correct and incorrect answers in 20 equal bins, mean
    over seeds. All estimators share the replicates of the bootstrap.
    """
    counts = [
        bootstrap_counts(int((row != ABSENT).sum()), n_replicates=N_REPLICATES, seed=seed)
        for row in part.answers.correct
    ]
    diagrams: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for member, runs in part.members.items():
        diagrams[member] = []
        for k, row in enumerate(part.answers.correct):
            there = row != ABSENT
            correct = row[there].astype(float)
            stated = [run[k, there] for run in runs]
            diagrams[member].append(
                {
                    **_diagram(stated, correct, counts[k]),
                    "right": _histogram(stated, correct == 1),
                    "wrong": _histogram(stated, correct == 0),
                }
            )
    return diagrams


def _diagram(
    runs: Sequence[NDArray[np.float64]],
    correct: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> dict[str, Any]:
    drawn = reliability(runs, correct, counts=counts)
    # Not beyond the confidences that were given, nor where hardly any are.
    stated, step = np.concatenate(runs), 0.51 / (len(drawn.confidence) - 1)
    within = np.clip(drawn.confidence, stated.min() - step, stated.max() + step)
    supported = (drawn.support >= LEAST_SUPPORT) & (within == drawn.confidence)
    columns = (drawn.confidence, drawn.accuracy, drawn.lower, drawn.upper)
    points = np.column_stack(columns)[supported].round(3)
    return {"smece": round(drawn.smece, 4), "points": points.tolist()}


def _histogram(runs: Sequence[NDArray[np.float64]], of: NDArray[np.bool_]) -> list[float]:
    total = sum(np.histogram(run[of], bins=N_BINS, range=(0, 1))[0] for run in runs)
    return (np.asarray(total) / len(runs)).round(1).tolist()


def pair_metrics(part: Part) -> dict[tuple[str, str], list[dict[str, float | None]]]:
    """Return by (train_dataset, estimator) Δ₀ᵇ and AUC on every contrast set.

    Means over seeds, also of the sets that are too small to be used in the tables;
    None where undefined.
    """
    return {
        member: [_on_pair(runs, pair) for pair in part.pairs]
        for member, runs in part.members.items()
    }


def _on_pair(runs: Sequence[NDArray[np.float64]], pair: ContrastSet) -> dict[str, float | None]:
    metrics = {name: CONTRAST_METRICS[name] for name in ("delta0_balanced", "auc")}
    if len(np.unique(pair.improvement)) < 2:
        return dict.fromkeys(metrics)
    part = component(pair.questions, pair.improvement)
    said = [on_contrast_set(run, pair, part, "odds") for run in runs]
    values = compute(metrics, said, once(part))
    return {name: round(float(of_runs.mean()), 4) for name, of_runs in values.items()}

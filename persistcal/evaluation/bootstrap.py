"""Metrics of every estimator under every bootstrap replicate.

Replicates are columns of multiplicities (`persistcal.evaluation.draws`). Most metrics are
sums weighted by them, AUC takes one pass over the sorted answers, and SmoothECE
is linear up to its last step; so no replicate is ever made.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT, Answers
from persistcal.evaluation.conditioning import Conditioning
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import Component, Counts, by_component, component
from persistcal.evaluation.evaluate import CONTRAST_METRICS, pair_confidences
from persistcal.evaluation.smooth_ece import smooth_ece_columns

Array = NDArray[np.float64]


class Components(NamedTuple):
    """What is drawn for the full-set and for the contrast metrics.

    Attributes
    ----------
    full : list of Component
        Per checkpoint: its answered questions, the correct ones first.
    contrast : list of Component
        Per kept contrast set: improvements first.
    """

    full: list[Component]
    contrast: list[Component]


def components_of(answers: Answers, pairs: Sequence[ContrastSet]) -> Components:
    """Return the components of answers and of their kept contrast sets."""
    return Components(
        [
            component(np.flatnonzero(row != ABSENT), row[row != ABSENT] == 1)
            for row in answers.correct
        ],
        [component(pair.questions, pair.improvement) for pair in pairs],
    )


def metrics_under(
    counts: Counts,
    answers: Answers,
    pairs: Sequence[ContrastSet],
    conditionings: Sequence[Conditioning],
) -> dict[tuple[str, str, str], Array]:
    """Compute the metrics of every estimator under every column of multiplicities.

    Parameters
    ----------
    counts : uint8 ndarray of shape (n_rows, n_columns)
        Of `components_of` the answers and pairs, full before contrast; as from
        `draw`. With ones alone, the metrics are those of the data.
    answers : Answers
        Their estimators are the rows of the result.
    pairs : sequence of ContrastSet
        The contrast sets that are kept.
    conditionings : sequence of {"odds", "fitted"}
        Of the contrast metrics, fitted to the data and not to replicates.

    Returns
    -------
    dict of (conditioning, scope, metric) to ndarray of shape (n_estimators, n_columns)
        Means over seeds; rows in order of `answers.estimators`. Full-set
        metrics have the conditioning "odds". NaN where undefined.
    """
    full, contrast = components_of(answers, pairs)
    drawn = by_component(counts, [*full, *contrast])
    pooled = counts[: sum(len(part.questions) for part in full)]
    values: dict[tuple[str, str, str], list[Array]] = {}
    for runs in answers.estimators.values():
        for metric, value in _full_set(runs, full, pooled).items():
            values.setdefault(("odds", "full", metric), []).append(value)
        for conditioning in conditionings:
            by_pair = [
                _contrast_set(runs, pair, part, rows, conditioning)
                for pair, part, rows in zip(pairs, contrast, drawn[len(full) :], strict=True)
            ]
            undefined = np.full(counts.shape[1], np.nan)
            for metric in CONTRAST_METRICS:
                mean = np.mean([of[metric] for of in by_pair], axis=0) if pairs else undefined
                values.setdefault((conditioning, "contrast", metric), []).append(mean)
    return {key: np.array(rows) for key, rows in values.items()}


def _full_set(
    runs: Sequence[Array], parts: Sequence[Component], counts: Counts
) -> dict[str, Array]:
    """Full-set metrics under each column of counts, averaged over the runs of an estimator."""
    correct = [np.arange(len(part.questions)) < part.n_first for part in parts]
    label, drawn = np.concatenate(correct), by_component(counts, parts)
    areas, errors, gaps = [], [], []
    for run in runs:
        stated = [run[k, part.questions] for k, part in enumerate(parts)]
        areas.append(auc_columns(np.concatenate(stated), label, counts))
        errors.append((np.concatenate(stated) - label) ** 2 / len(label))
        gaps += [
            smooth_ece_columns(confidence, right, rows)
            for confidence, right, rows in zip(stated, correct, drawn, strict=True)
        ]
    return {
        "auc": np.mean(areas, axis=0),
        "brier": weighted_sums(np.mean(errors, axis=0)[None], counts)[0],
        "smece": np.mean(gaps, axis=0),
    }


def _contrast_set(
    runs: Sequence[Array],
    pair: ContrastSet,
    part: Component,
    counts: Counts,
    conditioning: Conditioning,
) -> dict[str, Array]:
    """Metrics on a contrast set under each column of counts, averaged over runs."""
    n = len(part.questions)
    improvement = np.arange(n) < part.n_first
    class_size = np.where(improvement, part.n_first, n - part.n_first)
    # the quotas fix the class sizes, so that balanced means are sums with fixed weights
    balance = np.full(n, np.nan) if part.n_first in (0, n) else 0.5 / class_size
    in_order = np.argsort(~pair.improvement, kind="stable")
    twice = np.concatenate([counts, counts])
    linear, areas, errors = [], [], []
    for run in runs:
        earlier, later, gap, sign = (
            values[in_order] for values in pair_confidences(run, pair, conditioning)
        )
        right, wrong = np.where(improvement, [later, earlier], [earlier, later])
        error = ((1 - right) ** 2 + wrong**2) / 2
        linear.append(np.array([sign * balance, sign / n, gap * balance, gap / n, error / n]))
        areas.append(auc_columns(np.concatenate([right, wrong]), np.arange(2 * n) < n, twice))
        errors.append(smooth_ece_columns(earlier, ~improvement, counts))
    sums = weighted_sums(np.mean(linear, axis=0), counts)
    names = ("delta0_balanced", "delta0", "delta_balanced", "delta", "brier")
    return {
        **dict(zip(names, sums, strict=True)),
        "auc": np.mean(areas, axis=0),
        "smece": np.mean(errors, axis=0),
    }


def weighted_sums(values: Array, counts: Counts) -> Array:
    """Return values @ counts, for values of shape (n_metrics, n_answers)."""
    sums = np.empty((len(values), counts.shape[1]))
    for start in range(0, counts.shape[1], 256):
        sums[:, start : start + 256] = values @ counts[:, start : start + 256].astype(float)
    return sums


def auc_columns(confidence: Array, correct: NDArray[np.bool_], counts: Counts) -> Array:
    """AUC under each column of counts, ties counting half; NaN where a class is missing.

    Goes through the answers once, from the lowest confidence to the highest,
    keeping for all columns the number of incorrect answers so far.
    """
    n_columns = counts.shape[1]
    below, doubled, rights, here = (np.zeros(n_columns, np.int64) for _ in range(4))
    for wrong, tied, right in _steps(confidence, correct):
        for row in wrong:
            below += counts[row]
        if not right:
            continue
        here[:] = counts[right[0]]
        for row in right[1:]:
            here += counts[row]
        rights += here
        if tied:
            level = counts[tied].sum(axis=0, dtype=np.int64)
            doubled += here * level
        doubled += 2 * here * below
        if tied:
            below += level
    pairs = rights * below
    return np.divide(doubled, 2 * pairs, out=np.full(n_columns, np.nan), where=pairs > 0)


def _steps(
    confidence: Array, correct: NDArray[np.bool_]
) -> list[tuple[list[int], list[int], list[int]]]:
    """Order answers as steps (incorrect ones below, incorrect ones tied, correct ones).

    Correct answers with no incorrect one between them make one step.
    """
    steps: list[tuple[list[int], list[int], list[int]]] = [([], [], [])]
    stated, is_right = confidence.tolist(), correct.tolist()
    for _, level in groupby(np.argsort(confidence, kind="stable").tolist(), stated.__getitem__):
        rows = list(level)
        right = [row for row in rows if is_right[row]]
        wrong = [row for row in rows if not is_right[row]]
        below, tied, rights = steps[-1]
        if right and wrong:
            steps.append(([], wrong, right))
        elif wrong and rights:
            steps.append((wrong, [], []))
        elif wrong:
            below += wrong
        elif tied:
            steps.append(([], [], right))
        else:
            rights += right
    return steps

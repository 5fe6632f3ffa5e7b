"""Every metric of confidences, once: under weights, of which the plain metric has ones.

Weights are multiplicities: of shape (n,), or (n, n_columns) for as many values at once, as in
bootstrap replicates. A value that is undefined is NaN; `persistcal.evaluation.evaluate` logs
why. A metric is a function here and a line in `FULL_METRICS` or `CONTRAST_METRICS`; its name in
tables is in `persistcal.report.latex`, and `study/schema.yaml` lets tables ask for it.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.smooth_ece import smooth_ece

Array = NDArray[np.float64]
CHUNK = 256  # columns at a time, to bound memory


def _weights(weights: ArrayLike | None, n: int) -> NDArray:
    return np.ones(n) if weights is None else np.asarray(weights)


def auc(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Array:
    """Share of (correct, incorrect) pairs whose correct answer has the higher confidence.

    Goes through the answers once, from the lowest confidence to the highest, keeping for all
    columns the number of incorrect answers so far.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        Any score that grows with the chance of being correct.
    correct : array-like of shape (n_answers,)
        0 or 1.
    weights : array-like of shape (n_answers,) or (n_answers, n_columns), optional
        Multiplicities, at least 0.
    rows : int ndarray of shape (n_answers,), optional
        The row of `weights` that each answer has, if not its own.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        In [0, 1]; ties count half. NaN unless both classes are there.

    References
    ----------
    .. [1] Hanley and McNeil, "The meaning and use of the area under a receiver
       operating characteristic (ROC) curve", Radiology 1982.

    Examples
    --------
    Of the pairs (0.9, 0.4), (0.9, 0.9), (0.4, 0.4), (0.4, 0.9), one is right
    and two are ties:

    >>> float(auc([0.9, 0.4, 0.4, 0.9], [1, 1, 0, 0]))
    0.5
    """
    stated, right = np.asarray(confidence, float), np.asarray(correct, bool)
    weight = _weights(weights, len(stated))
    columns = weight[:, None] if weight.ndim == 1 else weight
    n_columns = columns.shape[1]
    below, rights, won, here, level = (np.zeros(n_columns) for _ in range(5))
    for is_right, tied, run in _runs(stated, right, rows):
        if not is_right and not tied:
            for row in run:
                below += columns[row]
            continue
        of_run = here if is_right else level
        of_run[:] = columns[run[0]]
        for row in run[1:]:
            of_run += columns[row]
        if is_right:
            rights += here
            if tied:
                won += here * level / 2
            won += np.multiply(here, below, out=here)
            if tied:
                below += level
    pairs = rights * below
    area = np.divide(won, pairs, out=np.full(n_columns, np.nan), where=pairs > 0)
    return area.reshape(weight.shape[1:])[()]


def _runs(
    confidence: Array, correct: NDArray[np.bool_], rows: NDArray[np.intp] | None
) -> Iterator[tuple[bool, bool, list[int]]]:
    """Yield answers in order of confidence, in runs of one class: (correct, tied, rows).

    Where a confidence has answers of both classes, they are tied: a run each, incorrect first.
    """
    order = np.lexsort((correct, confidence))
    right = correct[order]
    level = np.cumsum(np.diff(confidence[order], prepend=np.nan) != 0)
    n_right, n_all = np.bincount(level, right), np.bincount(level)
    tied = ((n_right > 0) & (n_right < n_all))[level]
    same_level = np.where(tied, level, 0)
    starts = (np.diff(right, prepend=False) != 0) | (np.diff(same_level, prepend=0) != 0)
    starts[:1] = True
    in_order = (order if rows is None else rows[order]).tolist()
    for first, last in pairwise([*np.flatnonzero(starts).tolist(), len(in_order)]):
        yield bool(right[first]), bool(tied[first]), in_order[first:last]


def brier(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> Array:
    """Mean squared difference between confidence and correctness.

    Parameters and weights as in `auc`. In [0, 1], 0 is perfect; NaN when there
    are no answers.

    References
    ----------
    .. [1] Brier, "Verification of forecasts expressed in terms of
       probability", Monthly Weather Review 1950.

    Examples
    --------
    >>> float(brier([1.0, 0.5], [1, 0]))  # (0 + 0.25) / 2
    0.125
    """
    error = (np.asarray(confidence, float) - np.asarray(correct, float)) ** 2
    return mean_gap(error, weights=weights)


def mean_gap(gap: ArrayLike, *, weights: ArrayLike | None = None) -> Array:
    """Weighted mean: Δ of gaps, Δ₀ of their signs. NaN when there are none.

    Examples
    --------
    >>> float(mean_gap([0.5, -0.25, 0.5]))
    0.25
    """
    values = np.asarray(gap, float)
    weight = _weights(weights, len(values))
    columns = weight[:, None] if weight.ndim == 1 else weight
    sums = np.empty((2, columns.shape[1]))
    rows = np.array([values, np.ones(len(values))])
    for start in range(0, columns.shape[1], CHUNK):
        some = slice(start, start + CHUNK)
        sums[:, some] = rows @ columns[:, some].astype(float)
    undefined = np.full(columns.shape[1], np.nan)
    mean = np.divide(sums[0], sums[1], out=undefined, where=sums[1] > 0)
    return mean.reshape(weight.shape[1:])[()]


def balanced_gap(
    gap: ArrayLike, improvement: ArrayLike, *, weights: ArrayLike | None = None
) -> Array:
    """Mean of the mean gap over improvements and that over regressions.

    Δᵇ of gaps, Δ₀ᵇ of their signs: an estimator that only ever trusts the later
    checkpoint gets 0.

    Parameters
    ----------
    gap : array-like of shape (n_questions,)
        p₊ − p₋, or its sign.
    improvement : array-like of bool of shape (n_questions,)
        Whether the later checkpoint is the correct one.
    weights : array-like of shape (n_questions,) or (n_questions, n_columns), optional
        Multiplicities, at least 0.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        In [−1, 1]. NaN unless there are both improvements and regressions.

    Examples
    --------
    >>> float(balanced_gap([1, 1, 1, -1], [True, True, True, False]))
    0.0
    """
    values, improved = np.asarray(gap, float), np.asarray(improvement, bool)
    weight = _weights(weights, len(values))
    return (
        mean_gap(values[improved], weights=weight[improved])
        + mean_gap(values[~improved], weights=weight[~improved])
    ) / 2


class FullSet(NamedTuple):
    """What one run of an estimator says about the answers of all checkpoints.

    Attributes
    ----------
    confidence, correct : ndarray of shape (n_answers,)
        Checkpoint after checkpoint.
    checkpoints : list of slice
        The answers of each.
    """

    confidence: Array
    correct: NDArray[np.bool_]
    checkpoints: list[slice]


class OnContrastSet(NamedTuple):
    """What one run of an estimator says about the questions of a contrast set.

    Attributes
    ----------
    earlier, later : ndarray of shape (n_questions,)
        Conditioned confidences in the two checkpoints' answers.
    sign : ndarray of shape (n_questions,)
        Of the confidence in the correct answer minus that in the incorrect one,
        before conditioning: −1, 0 or 1.
    improvement : bool ndarray of shape (n_questions,)
        Whether the later answer is the correct one.
    """

    earlier: Array
    later: Array
    sign: Array
    improvement: NDArray[np.bool_]

    @property
    def gap(self) -> Array:
        """Conditioned confidence in the correct answer minus that in the incorrect one."""
        return np.where(self.improvement, 1.0, -1.0) * (self.later - self.earlier)

    @property
    def error(self) -> Array:
        """Squared error, as a mean over both answers."""
        towards_later = self.improvement.astype(float)
        return ((self.earlier - (1 - towards_later)) ** 2 + (self.later - towards_later) ** 2) / 2


def _full_smooth_ece(of: FullSet, weights: NDArray) -> Array:
    by_checkpoint = [
        smooth_ece(of.confidence[rows], of.correct[rows], weights=weights[rows])
        for rows in of.checkpoints
    ]
    return np.mean(by_checkpoint, axis=0)


def _contrast_auc(of: OnContrastSet, weights: NDArray) -> Array:
    return auc(
        np.concatenate([of.earlier, of.later]),
        np.concatenate([~of.improvement, of.improvement]),
        weights=weights,
        rows=np.tile(np.arange(len(of.earlier)), 2),
    )


FULL_METRICS: Mapping[str, Callable[[FullSet, NDArray], Array]] = {
    "auc": lambda of, weights: auc(of.confidence, of.correct, weights=weights),
    "brier": lambda of, weights: brier(of.confidence, of.correct, weights=weights),
    "smece": _full_smooth_ece,
}
CONTRAST_METRICS: Mapping[str, Callable[[OnContrastSet, NDArray], Array]] = {
    "delta0_balanced": lambda of, weights: balanced_gap(
        of.sign, of.improvement, weights=weights
    ),
    "delta0": lambda of, weights: mean_gap(of.sign, weights=weights),
    "delta_balanced": lambda of, weights: balanced_gap(of.gap, of.improvement, weights=weights),
    "delta": lambda of, weights: mean_gap(of.gap, weights=weights),
    "auc": _contrast_auc,
    "brier": lambda of, weights: mean_gap(of.error, weights=weights),
    # one checkpoint alone: over both, errors of opposite sign would cancel
    "smece": lambda of, weights: smooth_ece(of.earlier, ~of.improvement, weights=weights),
}
LOWER_IS_BETTER = frozenset({"brier", "smece"})

"""Discrimination and calibration of confidences, on a full set and on a contrast set.

`gap` in the Δ metrics is p₊ − p₋: the confidence in the correct answer minus
that in the incorrect answer to the same question (Δ₀: its sign). Every function
takes weights; a weight of 2 is the same as the answer given twice. A value that
is undefined is NaN; `persistcal.evaluation.evaluate` logs why.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    return np.ones(n) if weights is None else np.asarray(weights, float)


def auc(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Share of (correct, incorrect) pairs whose correct answer has the higher confidence.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        Any score that grows with the chance of being correct.
    correct : array-like of shape (n_answers,)
        0 or 1.
    weights : array-like of shape (n_answers,), optional
        Multiplicities, at least 0.

    Returns
    -------
    float
        In [0, 1]; ties count half. NaN unless both classes are there.

    References
    ----------
    .. [1] Hanley and McNeil, "The meaning and use of the area under a receiver
       operating characteristic (ROC) curve", Radiology 1982.

    Examples
    --------
    Of the pairs (0.9, 0.4), (0.9, 0.9), (0.4, 0.4), (0.4, 0.9), one is right
    and two are ties:

    >>> auc([0.9, 0.4, 0.4, 0.9], [1, 1, 0, 0])
    0.5
    """
    confidence, correct = np.asarray(confidence, float), np.asarray(correct, float)
    weight = _weights(weights, len(confidence))
    _, rank = np.unique(confidence, return_inverse=True)
    right = np.bincount(rank, weight * correct)
    wrong = np.bincount(rank, weight * (1 - correct))
    pairs = right.sum() * wrong.sum()
    if pairs == 0:
        return float("nan")
    return float(right @ (np.cumsum(wrong) - wrong / 2) / pairs)


def brier(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Mean squared difference between confidence and correctness.

    Parameters and weights as in `auc`. In [0, 1], 0 is perfect; NaN when there
    are no answers.

    References
    ----------
    .. [1] Brier, "Verification of forecasts expressed in terms of
       probability", Monthly Weather Review 1950.

    Examples
    --------
    >>> brier([1.0, 0.5], [1, 0])  # (0 + 0.25) / 2
    0.125
    """
    error = (np.asarray(confidence, float) - np.asarray(correct, float)) ** 2
    return mean_gap(error, weights=weights)


def mean_gap(gap: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Weighted mean: Δ of gaps, Δ₀ of their signs. NaN when there are none.

    Examples
    --------
    >>> mean_gap([0.5, -0.25, 0.5])
    0.25
    """
    gap = np.asarray(gap, float)
    weight = _weights(weights, len(gap))
    total = weight.sum()
    return float(weight @ gap / total) if total > 0 else float("nan")


def balanced_gap(
    gap: ArrayLike, improvement: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Mean of the mean gap over improvements and that over regressions.

    Δᵇ of gaps, Δ₀ᵇ of their signs: an estimator that only ever trusts the later
    checkpoint gets 0.

    Parameters
    ----------
    gap : array-like of shape (n_questions,)
        p₊ − p₋, or its sign.
    improvement : array-like of bool of shape (n_questions,)
        Whether the later checkpoint is the correct one.
    weights : array-like of shape (n_questions,), optional
        Multiplicities, at least 0.

    Returns
    -------
    float
        In [−1, 1]. NaN unless there are both improvements and regressions.

    Examples
    --------
    >>> balanced_gap([1, 1, 1, -1], [True, True, True, False])
    0.0
    """
    gap, improvement = np.asarray(gap, float), np.asarray(improvement, bool)
    weight = _weights(weights, len(gap))
    return (
        mean_gap(gap[improvement], weights=weight[improvement])
        + mean_gap(gap[~improvement], weights=weight[~improvement])
    ) / 2

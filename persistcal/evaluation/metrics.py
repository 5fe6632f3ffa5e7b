"""AUC, Brier score and gaps, weighted; the plain metric has weights of 1.

Weights are multiplicities: of shape (n,), or (n, n_columns) for as many values at once, as in
bootstrap replicates. An undefined value is NaN; `persistcal.evaluation.evaluate` logs why.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
CHUNK = 2**23  # weights that are held as floats at a time, if that leaves 8 columns


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
    from persistcal.evaluation.loops import compilable, count_pairs

    stated, right = np.asarray(confidence, float), np.asarray(correct, bool)
    weight = _weights(weights, len(stated))
    columns = weight[:, None] if weight.ndim == 1 else weight
    order = np.lexsort((right, stated))
    level = np.cumsum(np.diff(stated[order], prepend=np.nan) != 0)
    won, pairs = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    count_pairs(
        order if rows is None else rows[order],
        right[order],
        level,
        compilable(columns),
        won,
        pairs,
    )
    area = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return area.reshape(weight.shape[1:])[()]


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
    return mean_gap(squared_error(confidence, correct), weights=weights)


def squared_error(confidence: ArrayLike, correct: ArrayLike) -> Array:
    """Return the squared difference between confidence and correctness."""
    return (np.asarray(confidence, float) - np.asarray(correct, float)) ** 2


def mean_gap(gap: ArrayLike, *, weights: ArrayLike | None = None) -> Array:
    """Weighted mean: Δ of gaps, Δ₀ of their signs. NaN when there are none.

    Parameters
    ----------
    gap : array-like of shape (n_questions,) or (n_rows, n_questions)
        p₊ − p₋, or its sign; rows are averaged each by itself.
    weights : array-like of shape (n_questions,) or (n_questions, n_columns), optional
        Multiplicities, at least 0.

    Returns
    -------
    float or ndarray of shape (n_rows,), (n_columns,) or (n_rows, n_columns)

    Examples
    --------
    >>> float(mean_gap([0.5, -0.25, 0.5]))
    0.25
    """
    values = np.asarray(gap, float)
    weight = _weights(weights, values.shape[-1])
    columns = weight[:, None] if weight.ndim == 1 else weight
    rows = np.concatenate([np.atleast_2d(values), np.ones((1, values.shape[-1]))])
    sums = np.empty((len(rows), columns.shape[1]))
    width = int(np.clip(CHUNK // max(1, len(columns)), 8, 64))
    for start in range(0, columns.shape[1], width):
        some = slice(start, start + width)
        sums[:, some] = rows @ columns[:, some].astype(float)
    total = sums[-1]
    undefined = np.full((len(rows) - 1, len(total)), np.nan)
    mean = np.divide(sums[:-1], total, out=undefined, where=total > 0)
    return mean.reshape(values.shape[:-1] + weight.shape[1:])[()]


def balanced_gap(
    gap: ArrayLike, improvement: ArrayLike, *, weights: ArrayLike | None = None
) -> Array:
    """Mean of the mean gap over improvements and that over regressions.

    Δᵇ of gaps, Δ₀ᵇ of their signs: an estimator that only ever trusts the later
    checkpoint gets 0. Parameters and shapes as in `mean_gap`, and:

    Parameters
    ----------
    improvement : array-like of bool of shape (n_questions,)
        Whether the later checkpoint is the correct one.

    Returns
    -------
    float or ndarray
        In [−1, 1]. NaN unless there are both improvements and regressions.

    Examples
    --------
    >>> float(balanced_gap([1, 1, 1, -1], [True, True, True, False]))
    0.0
    """
    values, improved = np.asarray(gap, float), np.asarray(improvement, bool)
    weight = _weights(weights, values.shape[-1])
    return (
        mean_gap(values[..., improved], weights=weight[improved])
        + mean_gap(values[..., ~improved], weights=weight[~improved])
    ) / 2

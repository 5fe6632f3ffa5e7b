"""Weighted AUC, squared errors and mean gaps, for many columns of weights at once.

Large arrays are divided between threads. OMP_NUM_THREADS limits the number of threads.
Weights are multiplicities of shape (n,), or (n, n_columns) for n_columns values at once, such
as bootstrap replicates. An undefined value is NaN; `persistcal.evaluation.evaluate` logs why.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.predictions import Array, Mask

AT_ONCE = 1024  # columns with sums that fit into a cache
FEW = 32  # columns that np.cumsum adds up faster than a loop over rows
CHUNK = 2**17  # weights that are held as floats at a time: they fit into a cache
MOST_THREADS = 4  # each copies its weights
WORTH_A_THREAD = 2**23  # numbers
SMALL = 2**23  # weights up to which NumPy is fast enough, without the time to compile a loop
MANY = 2**29  # weights that take NumPy about as long as it takes to load a compiled loop
_n_counted = 0

T = TypeVar("T")
R = TypeVar("R")


def n_threads() -> int:
    """Return how many threads can run."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    available = int(given) if given.isdigit() else os.cpu_count() or 1
    return max(1, min(MOST_THREADS, available))


def in_threads(function: Callable[[T], R], items: Iterable[T], *, size: int) -> list[R]:
    """Return the value for each item, in order; `size` is how many numbers each one reads.

    Threads help where NumPy, SciPy and compiled loops release Python's lock.

    >>> in_threads(abs, [-1, 2], size=WORTH_A_THREAD)
    [1, 2]
    """
    chosen = list(items)
    if size < WORTH_A_THREAD or n_threads() == 1 or len(chosen) < 2:
        return list(map(function, chosen))
    with ThreadPoolExecutor(n_threads()) as pool:
        return list(pool.map(function, chosen))


def as_columns(weights: ArrayLike | None, n: int) -> tuple[NDArray, NDArray]:
    """Return weights of n answers, by default ones, and the same as (n, n_columns)."""
    weight = np.ones(n) if weights is None else np.asarray(weights)
    return weight, weight[:, None] if weight.ndim == 1 else weight


def auc(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Array:
    """Share of (correct, incorrect) pairs in which the correct one has the higher confidence.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_answers,)
        Any score that grows with the chance of being correct; and 0 or 1.
    weights : array-like of shape (n_answers,) or (n_answers, n_columns), optional
        Multiplicities, at least 0.
    rows : int ndarray of shape (n_answers,), optional
        The row of `weights` of each answer, if not its own.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        In [0, 1]; ties count half. NaN without both classes.

    References
    ----------
    .. [1] Hanley and McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", Radiology 1982.

    Examples
    --------
    Of the pairs (.9, .4), (.9, .9), (.4, .4), (.4, .9) one is in order and two are ties:

    >>> float(auc([0.9, 0.4, 0.4, 0.9], [1, 1, 0, 0]))
    0.5
    """
    stated, right = np.asarray(confidence, float), np.asarray(correct, bool)
    weight, columns = as_columns(weights, len(stated))
    won, rights, wrongs = count_wins(stated, right, columns, rows)
    pairs = rights * wrongs
    area = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return area.reshape(weight.shape[1:])[()]


def count_wins(
    stated: Array,
    right: Mask,
    weights: NDArray,
    rows: NDArray[np.intp] | None = None,
    *,
    among: int = 0,
) -> tuple[Array, Array, Array]:
    """Sum the pairs that a correct answer wins, the correct and the incorrect answers.

    Ties are half a win. A compiled loop sums if the weights are many or are some of many,
    `among`, or if they are counts and many were summed before. Counts have equal sums in both
    loops, so that the order of calls has no effect on values.
    """
    global _n_counted
    size, are_counts = len(stated) * weights.shape[1], weights.dtype == np.uint8
    _n_counted += are_counts * size
    is_large = size > SMALL or among > MANY or (are_counts and _n_counted > MANY)
    count = _count_many_pairs if is_large else _count_pairs
    return count(stated, right, np.arange(len(stated)) if rows is None else rows, weights)


def _count_pairs(
    stated: Array, right: Mask, rows: NDArray[np.intp], weights: NDArray
) -> tuple[Array, Array, Array]:
    order = np.argsort(stated, kind="stable")
    correct, incorrect = order[right[order]], order[~right[order]]
    below, up_to = (
        np.searchsorted(stated[incorrect], stated[correct], side) for side in ("left", "right")
    )
    tied = below < up_to
    won, right_sums, wrong_sums = np.empty((3, weights.shape[1]))
    for start in range(0, len(won), AT_ONCE):
        chunk = slice(start, start + AT_ONCE)
        rights = weights[rows[correct], chunk].astype(float)
        wrongs = np.zeros((len(incorrect) + 1, rights.shape[1]))
        wrongs[1:] = weights[rows[incorrect], chunk]
        if wrongs.shape[1] <= FEW:
            np.cumsum(wrongs, axis=0, out=wrongs)
        else:
            for sums, further in pairwise(wrongs):  # a quarter of the time of np.cumsum
                further += sums
        ties = wrongs[up_to[tied]] - wrongs[below[tied]]
        won[chunk] = np.einsum("ij,ij->j", rights, wrongs[below])
        won[chunk] += np.einsum("ij,ij->j", rights[tied], ties) / 2
        right_sums[chunk], wrong_sums[chunk] = rights.sum(axis=0), wrongs[-1]
    return won, right_sums, wrong_sums


def _count_many_pairs(
    stated: Array, right: Mask, rows: NDArray[np.intp], weights: NDArray
) -> tuple[Array, Array, Array]:
    """Return the same as `_count_pairs`, by a loop that is compiled at its first use."""
    from persistcal.evaluation.loops import count_pairs

    order = np.lexsort((right, stated))
    level = np.cumsum(np.diff(stated[order], prepend=np.nan) != 0)
    return count_pairs(rows[order], right[order], level, weights)


def squared_error(confidence: ArrayLike, correct: ArrayLike) -> Array:
    """Squared difference between confidence and correctness. The mean is the Brier score.

    References
    ----------
    .. [1] Brier, "Verification of forecasts expressed in terms of probability", Monthly
       Weather Review 1950.

    Examples
    --------
    >>> float(mean_gap(squared_error([1.0, 0.5], [1, 0])))  # (0 + 0.25) / 2
    0.125
    """
    return (np.asarray(confidence, float) - np.asarray(correct, float)) ** 2


def mean_gap(gap: ArrayLike, *, weights: ArrayLike | None = None) -> Array:
    """Weighted mean: Δ for gaps p₊ − p₋, Δ₀ for their signs. NaN for an empty array.

    The result for gaps of shape (n_questions,) or (n_rows, n_questions) and `weights` of shape
    (n_questions,) or (n_questions, n_columns) has a value per row and column.

    >>> float(mean_gap([0.5, -0.25, 0.5]))
    0.25
    """
    values = np.asarray(gap, float)
    weight, columns = as_columns(weights, values.shape[-1])
    rows = np.concatenate([np.atleast_2d(values), np.ones((1, values.shape[-1]))])
    sums = np.zeros((len(rows), columns.shape[1]))
    height = max(8, CHUNK // max(1, columns.shape[1]))
    for start in range(0, len(columns), height):
        chunk = slice(start, start + height)
        sums += rows[:, chunk] @ columns[chunk].astype(float)
    total = sums[-1]
    undefined = np.full((len(rows) - 1, len(total)), np.nan)
    mean = np.divide(sums[:-1], total, out=undefined, where=total > 0)
    return mean.reshape(values.shape[:-1] + weight.shape[1:])[()]


def by_direction(improvement: Mask) -> tuple[Mask | slice, Mask | slice]:
    """Return the rows of gained and of lost questions; slices copy nothing, if they are sorted.

    >>> by_direction(np.array([True, True, False]))
    (slice(None, 2, None), slice(2, None, None))
    """
    n = int(improvement.sum())
    if improvement[:n].all():
        return slice(n), slice(n, None)
    return improvement, ~improvement


def balanced_gap(
    gap: ArrayLike, improvement: ArrayLike, *, weights: ArrayLike | None = None
) -> Array:
    """Mean of two mean gaps, over improvements and over regressions, in [−1, 1].

    It is Δᵇ for gaps and Δ₀ᵇ for signs of gaps. An estimator that always prefers the later
    checkpoint has 0. Shapes are as in `mean_gap`; `improvement`, of shape (n_questions,), is
    True if the later checkpoint is correct. NaN unless there are both improvements and
    regressions.

    >>> float(balanced_gap([1, 1, 1, -1], [True, True, True, False]))
    0.0
    """
    values, improved = np.asarray(gap, float), np.asarray(improvement, bool)
    weight, _ = as_columns(weights, values.shape[-1])
    gained, lost = (
        mean_gap(values[..., chosen], weights=weight[chosen])
        for chosen in by_direction(improved)
    )
    return (gained + lost) / 2

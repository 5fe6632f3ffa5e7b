"""The loop over answers for many replicates of large studies, compiled by numba.

NumPy makes a pass over memory for each step of such a loop; the compiled loop reads the weights
of an answer once. Counts of 8 bits are summed in 16 bits as long as the sums fit. Compiled
functions are cached next to the bytecode, per kind of processor.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
AT_ONCE = 2048  # columns with sums that fit into the nearest caches
LARGEST = 2**16 - 1  # sum of 16 bits
FLOATS_AT_ONCE = 64  # answers


def _compiled(function: Callable) -> Any:  # noqa: ANN401
    try:
        return numba.njit(function, cache=True, nogil=True, fastmath={"contract"})
    except RuntimeError:  # no folder can be written to: compiled in each process
        return numba.njit(function, nogil=True, fastmath={"contract"})


def count_pairs(
    rows: Integers, correct: NDArray[np.bool_], level: Integers, weights: NDArray
) -> tuple[Array, Array]:
    """Count the pairs that a correct answer wins against an incorrect one, and all pairs.

    Answers are in ascending order of confidence. Answers with equal confidence have the same
    `level`, incorrect ones first. `rows` are their positions in `weights`, (n_rows, n_columns).
    A tie counts as half a win.
    """
    won, pairs = np.empty((2, weights.shape[1]))
    given = np.ascontiguousarray(weights, None if weights.dtype == np.uint8 else float)
    kind: Any = float
    most = most_alike = FLOATS_AT_ONCE
    if given.dtype == np.uint8:
        kind, largest = np.uint16, max(1, int(given.max(initial=0)))
        # the sums of `most` answers, and the wins among them, at most a quarter of the square
        most, most_alike = max(1, 2 * int(LARGEST**0.5) // largest), LARGEST // largest
    width = min(AT_ONCE, len(won))
    sums = tuple(np.zeros(width, kind) for _ in range(3))
    totals = tuple(np.zeros(width) for _ in range(5))
    limits, result = (most, most_alike), (won, pairs)
    _count_pairs(rows, correct, level, given, limits, sums, totals, result)
    return won, pairs


def sum_bins(labels: NDArray, distance: Array, first: Integers) -> tuple[Array, Array]:
    """Sum labels, and labels times distance, over bins of answers: (n_bins, n_columns).

    `labels`, or counts, have the shape (n_answers, n_columns), and `first` are the positions of
    the bins.
    """
    sums, sums_apart = np.zeros((2, len(first), labels.shape[1]))
    _sum_bins(labels, distance, np.append(first, len(labels)), sums, sums_apart)
    return sums, sums_apart


@_compiled
def _sum_bins(
    labels: NDArray, distance: Array, ends: Integers, sums: Array, sums_apart: Array
) -> None:
    for number in range(len(sums)):
        total, apart = sums[number], sums_apart[number]
        for answer in range(ends[number], ends[number + 1]):
            row, value = labels[answer], distance[answer]
            for j in range(len(total)):
                label = np.float64(row[j])
                total[j] += label
                apart[j] += label * value


@_compiled
def _add(row: NDArray, total: NDArray) -> None:
    for j in range(len(row)):
        total[j] += row[j]


@_compiled
def _beat(row: NDArray, below: NDArray, rights: NDArray, wins: NDArray) -> None:
    for j in range(len(row)):
        rights[j] += row[j]
        wins[j] += row[j] * below[j]


@_compiled
def _sum(
    rows: Integers, columns: slice, weights: NDArray, most: int, part: NDArray, total: Array
) -> None:
    """Write the sums of some rows into `total`; `part` is for sums of `most` rows."""
    total[:] = 0.0
    for first in range(0, len(rows), most):
        for row in rows[first : first + most]:
            _add(weights[row, columns], part)
        _move(part, total)


@_compiled
def _move(part: NDArray, total: Array) -> None:
    for j in range(len(total)):
        total[j] += part[j]
        part[j] = 0


@_compiled
def _settle(
    wins: Array, rights: Array, below: Array, part_wins: Array, part_rights: Array
) -> None:
    """Add answers whose pairs with each other are `part_wins`, above those that are `below`."""
    for j in range(len(wins)):
        wins[j] += part_wins[j] + part_rights[j] * below[j]
        rights[j] += part_rights[j]


@_compiled
def _count_pairs(
    rows: Integers,
    correct: NDArray[np.bool_],
    level: Integers,
    weights: NDArray,
    limits: tuple[int, int],
    sums: tuple[NDArray, NDArray, NDArray],
    totals: tuple[Array, Array, Array, Array, Array],
    result: tuple[Array, Array],
) -> None:
    most, most_alike = limits
    few_wins, few_rights, few_below = sums
    wins, rights, below, group_rights, group_below = totals
    won, pairs = result
    n = len(rows)
    for first in range(0, len(won), len(wins)):
        columns = slice(first, first + len(wins))
        wins[:] = 0.0
        rights[:] = 0.0
        below[:] = 0.0
        start = used = 0
        while start < n:
            middle = start
            while middle < n and not correct[middle] and level[middle] == level[start]:
                middle += 1
            end = middle
            while end < n and level[end] == level[start]:
                end += 1
            alike = (start < middle and middle < end) or end - start > most
            if used and (alike or used + end - start > most):
                _settle(wins, rights, below, few_wins, few_rights)
                _move(few_below, below)
                few_wins[:] = 0
                few_rights[:] = 0
                used = 0
            if alike:  # the sums of each class are enough
                _sum(rows[start:middle], columns, weights, most_alike, few_below, group_below)
                _sum(rows[middle:end], columns, weights, most_alike, few_rights, group_rights)
                for j in range(len(wins)):
                    wins[j] += group_rights[j] * (below[j] + 0.5 * group_below[j])
                    rights[j] += group_rights[j]
                    below[j] += group_below[j]
            else:
                used += end - start
                for row in rows[start:middle]:
                    _add(weights[row, columns], few_below)
                for row in rows[middle:end]:
                    _beat(weights[row, columns], few_below, few_rights, few_wins)
            start = end
        _settle(wins, rights, below, few_wins, few_rights)
        _move(few_below, below)
        few_wins[:] = 0
        few_rights[:] = 0
        for j in range(min(len(wins), len(won) - first)):
            won[first + j] = wins[j]
            pairs[first + j] = rights[j] * below[j]

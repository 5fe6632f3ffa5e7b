"""The loop over answers for many replicates of large studies, compiled by numba.

NumPy makes a pass over memory for each step of such a loop; the compiled loop reads the weights
of an answer once. Compiled functions are cached next to the bytecode, per kind of processor.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
AT_ONCE = 1024  # columns with sums that fit into the nearest cache


def _compiled(function: Callable) -> Any:  # noqa: ANN401
    try:
        return numba.njit(function, cache=True, nogil=True, fastmath={"contract"})
    except RuntimeError:  # no folder can be written to: compiled in each process
        return numba.njit(function, nogil=True, fastmath={"contract"})


def count_pairs(
    rows: Integers, correct: NDArray[np.bool_], level: Integers, weights: NDArray
) -> tuple[Array, Array, Array]:
    """Sum the pairs that a correct answer wins, the correct and the incorrect answers.

    Answers are in ascending order of confidence. Answers with equal confidence have the same
    `level`, incorrect ones first. `rows` are their positions in `weights`, (n_rows, n_columns).
    A tie counts as half a win.
    """
    won, rights, wrongs = np.zeros((3, weights.shape[1]))
    _count_pairs(rows, correct, level, weights, won, rights, wrongs)
    return won / 2, rights, wrongs / 2


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
def _add(row: NDArray, total: Array) -> None:
    for j in range(len(row)):
        total[j] += row[j]


@_compiled
def _count_pairs(
    rows: Integers,
    correct: NDArray[np.bool_],
    level: Integers,
    weights: NDArray,
    won: Array,
    right_sums: Array,
    wrong_sums: Array,
) -> None:
    """Write twice the wins, the sums of correct answers, and twice those of incorrect ones."""
    n = len(rows)
    for first in range(0, len(won), AT_ONCE):
        columns = slice(first, first + AT_ONCE)
        wins, rights = won[columns], right_sums[columns]
        twice = wrong_sums[columns]  # the incorrect answers below, and half of the tied ones
        start = 0
        while start < n:
            middle = start
            while middle < n and not correct[middle] and level[middle] == level[start]:
                middle += 1
            end = middle
            while end < n and level[end] == level[start]:
                end += 1
            for row in rows[start:middle]:
                _add(weights[row, columns], twice)
            for row in rows[middle:end]:
                weight = weights[row, columns]
                for j in range(len(weight)):
                    rights[j] += weight[j]
                    wins[j] += weight[j] * twice[j]
            for row in rows[start:middle]:
                _add(weights[row, columns], twice)
            start = end

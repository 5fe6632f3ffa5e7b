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
AT_ONCE = 1024  # columns with sums that fit into the nearest cache


def _compiled(function: Callable) -> Any:  # noqa: ANN401
    try:
        return numba.njit(function, cache=True, fastmath={"contract"})
    except RuntimeError:  # no folder can be written to: compiled in each process
        return numba.njit(function, fastmath={"contract"})


def compilable(weights: NDArray) -> NDArray:
    """Return weights as the loops take them: counts of 8 bits, or floats."""
    return np.ascontiguousarray(weights, None if weights.dtype == np.uint8 else float)


@_compiled
def count_pairs(
    rows: NDArray[np.intp],
    correct: NDArray[np.bool_],
    level: NDArray[np.intp],
    weights: NDArray,
    won: Array,
    pairs: Array,
) -> None:
    """Count pairs of a correct and an incorrect answer, and the pairs `won` by the correct one.

    Answers are in ascending order of confidence. Answers with equal confidence have the same
    `level`, incorrect ones first. `rows` are their positions in `weights`, (n_rows, n_columns).
    A tie counts as half a win.
    """
    for first in range(0, len(won), AT_ONCE):
        columns = slice(first, first + AT_ONCE)
        width = len(won[columns])
        wins, rights, below = np.zeros(width), np.zeros(width), np.zeros(width)
        start = 0
        while start < len(rows):
            middle = start
            while middle < len(rows) and not correct[middle] and level[middle] == level[start]:
                middle += 1
            end = middle
            while end < len(rows) and level[end] == level[start]:
                end += 1
            tied = start < middle < end
            share = 0.5 if tied else 1.0
            for answer in range(start, middle):
                _add(share, weights[rows[answer], columns], below)
            for answer in range(middle, end):
                row = weights[rows[answer], columns]
                for j in range(width):
                    weight = np.float64(row[j])
                    rights[j] += weight
                    wins[j] += weight * below[j]
            if tied:
                for answer in range(start, middle):
                    _add(share, weights[rows[answer], columns], below)
            start = end
        won[columns] = wins
        pairs[columns] = rights * below


@_compiled
def _add(share: float, row: NDArray, total: Array) -> None:
    for j in range(len(total)):
        total[j] += share * np.float64(row[j])

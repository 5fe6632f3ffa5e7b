"""Loops over answers for many replicates at once, compiled by numba.

NumPy makes a pass over memory for each step of such a loop; compiled, an answer's weights are
read once. What is compiled is kept beside the bytecode, for each kind of processor.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AT_ONCE = 1024  # columns whose sums stay in the nearest cache


def _compiled(function: Callable) -> Any:  # noqa: ANN401
    try:
        return numba.njit(function, cache=True, fastmath={"contract"})
    except RuntimeError:  # no folder can be written to: compiled in each process
        return numba.njit(function, fastmath={"contract"})


def compilable(weights: NDArray) -> NDArray:
    """Return weights as the loops take them: counts of 8 bits, or floats."""
    return np.ascontiguousarray(weights, None if weights.dtype == np.uint8 else float)


@_compiled
def sum_on_folded_grid(
    left: NDArray[np.intp],
    share: Array,
    residual: Array,
    weights: NDArray,
    even: Array,
    odd: Array,
    mass: Array,
) -> None:
    """Split weighted answers between grid points, and fold the grid at its middle.

    Answers are in ascending order, each with the grid point on its `left`, the `share` of the
    one on its right and its row of `weights`. Filled, (n_halved, n_columns) each: the even and
    the odd half of the residuals, and `mass`, the even half of the answers.
    """
    n_columns = weights.shape[1]
    at_left, at_right = np.zeros(n_columns), np.zeros(n_columns)
    mass_left, mass_right = np.zeros(n_columns), np.zeros(n_columns)
    even[:], odd[:], mass[:] = 0, 0, 0
    for answer in range(len(left)):
        right_share, left_share = share[answer], 1 - share[answer]
        right_residual = right_share * residual[answer]
        left_residual = left_share * residual[answer]
        row = weights[answer]
        for j in range(n_columns):
            weight = np.float64(row[j])
            at_left[j] += left_residual * weight
            at_right[j] += right_residual * weight
            mass_left[j] += left_share * weight
            mass_right[j] += right_share * weight
        point = left[answer]
        if answer + 1 == len(left) or left[answer + 1] > point:
            _fold_in(point, at_left, mass_left, even, odd, mass)
            _fold_in(point + 1, at_right, mass_right, even, odd, mass)


@_compiled
def _fold_in(
    point: int, residuals: Array, answers: Array, even: Array, odd: Array, mass: Array
) -> None:
    """Add what lies on a grid point to the halves of the grid, and begin anew."""
    middle = len(even) - 1
    to_even, to_odd = (1.0, 1.0) if point < middle else (1.0, -1.0)
    if point == middle:
        to_even, to_odd = 2.0, 0.0
    at = min(point, 2 * middle - point)
    even_row, odd_row, mass_row = even[at], odd[at], mass[at]
    for j in range(len(residuals)):
        even_row[j] += to_even * residuals[j]
        odd_row[j] += to_odd * residuals[j]
        mass_row[j] += to_even * answers[j]
        residuals[j] = 0
        answers[j] = 0


@_compiled
def count_pairs(
    rows: NDArray[np.intp],
    correct: NDArray[np.bool_],
    level: NDArray[np.intp],
    weights: NDArray,
    won: Array,
    pairs: Array,
) -> None:
    """Count pairs of a correct and an incorrect answer, and those that the correct one `won`.

    Answers are in ascending order of confidence, with equal ones of the same `level` and the
    incorrect of these first; `rows` lead to their `weights`, (n_rows, n_columns). A tie is half
    a win.
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


@_compiled
def settle(
    counts: NDArray[np.uint8],
    place: NDArray[np.intp],
    nearby: NDArray[np.unsignedinteger],
    missing: NDArray[np.intp],
    change: int,
) -> NDArray[np.bool_]:
    """Add a `change` to the counts of a class's questions as they come, until none is missing.

    `counts`, (n, n_columns), change in place; `place` is the row of each question, -1 outside
    the class; `nearby`, (n_columns, reach), are the questions that come, and `missing` says how
    many to take, if that is positive. Returns the columns, as booleans, in which there were too
    few.
    """
    short = np.zeros(len(missing), np.bool_)
    for column in range(len(missing)):
        left = missing[column]
        for question in nearby[column]:
            if left <= 0:
                break
            row = place[question]
            if row >= 0:
                counts[row, column] += change
                left -= 1
        short[column] = left > 0
    return short

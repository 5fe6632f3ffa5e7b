"""Smoothing by reflected Gaussians on the grids of `relplot`, as matrices.

Answers at confidences in [0, 1] are split between the two nearest points of a
grid, smoothed there, and read at the points of a coarser mesh. Bandwidths are
k/1024; from `COARSEST` on, all share the grid of `GRID` points.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.fft import dct

Array = NDArray[np.float64]

N_BANDWIDTHS = 1024
GRID = 1001
COARSEST = 11  # the smallest k whose grid has GRID points
# The kernel is cut at a distance of 0.5. Below this k the cut is low enough for the kernel to
# have few frequencies: leaving the rest out changes SmoothECE by less than 1e-7.
FREQUENCIES_END = 130


def n_grid_points(k: int) -> int:
    """Return the number of grid points at the bandwidth k/1024."""
    return max(2000, round(20 * N_BANDWIDTHS / k)) // 2 + 1


def mesh(k: int) -> Array:
    """Return where smoothed values are read at the bandwidth k/1024."""
    return np.linspace(0, 1, max(round(10 * N_BANDWIDTHS / k), 200))


def split(confidence: Array, n_points: int) -> tuple[NDArray[np.int_], Array]:
    """Return the grid point on the left of each confidence, and the share of the right one."""
    position = confidence * (n_points - 1)
    left = position.astype(int).clip(0, n_points - 2)
    return left, position - left


def place(confidence: Array, n_points: int) -> sparse.csr_matrix:
    """Return the matrix (n_points, n_answers) that puts answers on a grid."""
    left, share = split(confidence, n_points)
    n = np.arange(len(confidence))
    return sparse.csr_matrix(
        (np.r_[1 - share, share], (np.r_[left, left + 1], np.r_[n, n])),
        shape=(n_points, len(confidence)),
    )


def _kernel(k: int, n_points: int) -> Array:
    sigma = k / N_BANDWIDTHS
    height = 1 / (np.sqrt(2 * np.pi) * sigma)
    return height * np.exp(-((np.linspace(0, 1, n_points) - 0.5) ** 2) / (2 * sigma**2))


@lru_cache(maxsize=256)  # of 1.6 MB
def smoothing(k: int) -> Array | sparse.csr_matrix:
    """Return smoothing by k/1024 as a matrix (grid points, mesh points).

    It is sparse where the grid is finer than `GRID`. The grid is mirrored once
    at 0 and once at 1.
    """
    n_points, read = n_grid_points(k), mesh(k)
    kernel = _kernel(k, n_points)
    centre = (n_points - 1) // 2
    # each mesh point interpolates between the smoothed grid points on its left and right
    left = (read * (n_points - 1)).astype(int).clip(0, n_points - 2)
    share = (read - left / (n_points - 1)) * (n_points - 1)
    reach = min(centre, 9 * k * n_points // N_BANDWIDTHS)  # beyond 9 sigma it is below 1e-17
    offset = np.arange(-reach, reach + 3)
    padded = np.concatenate([[0.0], kernel, np.zeros(3)])
    at_left, at_right = padded[centre + offset + 1], padded[centre + offset]
    values = np.outer(1 - share, at_left) + np.outer(share, at_right)
    point = np.abs(left[:, None] + offset)
    point = np.where(point < n_points, point, 2 * (n_points - 1) - point)
    cell = (point * len(read) + np.arange(len(read))[:, None]).ravel()
    if n_points > GRID:
        where = np.divmod(cell, len(read))
        return sparse.csr_matrix((values.ravel(), where), shape=(n_points, len(read)))
    matrix = np.bincount(cell, values.ravel(), n_points * len(read))
    return matrix.reshape(n_points, len(read))


def n_frequencies(k: int) -> int:
    """Return how many cosines make up the kernel to 1e-12 at k/1024, a multiple of 16."""
    return 16 * int(np.ceil(2.37 * N_BANDWIDTHS / k / 16))


def cosines(confidence: Array, n: int, *, at_ends: float) -> Array:
    """Return the first n cosines on the grid, split as answers are: (n_answers, n).

    They are scaled by `at_ends` at the first and last grid point: 0.5 for what
    is smoothed, as mirroring doubles all other points, and 1 for where it is read.
    """
    table = np.cos(np.outer(np.arange(GRID), np.pi * np.arange(n) / (GRID - 1)))
    table[[0, -1]] *= at_ends
    left, share = split(confidence, GRID)
    return table[left] * (1 - share)[:, None] + table[left + 1] * share[:, None]


@lru_cache(maxsize=512)
def cosine_smoothing(k: int, n: int) -> Array:
    """Return smoothing by k/1024 as a matrix (n, mesh points), from `cosines` of answers.

    On a mirrored grid, a symmetric kernel multiplies each cosine by a factor.
    """
    half = np.zeros(GRID)
    half[: GRID // 2 + 1] = _kernel(k, GRID)[GRID // 2 :]
    factor = dct(half, type=1)[:n] * 2 / (GRID - 1)
    factor[0] /= 2
    return np.ascontiguousarray((cosines(mesh(k), n, at_ends=1) * factor).T)

"""Smoothing by reflected Gaussians on the grids of `relplot`, as sparse matrices.

Answers at confidences in [0, 1] are split between the two nearest points of a grid, smoothed
there, and read at the points of a coarser mesh. Bandwidths are k/1024; from `COARSEST` on, all
share the grid of `GRID` points.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

N_BANDWIDTHS = 1024
GRID = 1001
HALF = GRID // 2 + 1
COARSEST = 11  # the smallest k whose grid has GRID points


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


def place(confidence: Array, values: Array, n_points: int) -> sparse.csr_matrix:
    """Return the matrix (n_points, n_answers) that puts answers times values on a grid."""
    left, share = split(confidence, n_points)
    n = np.arange(len(confidence))
    return sparse.csr_matrix(
        (np.r_[(1 - share) * values, share * values], (np.r_[left, left + 1], np.r_[n, n])),
        shape=(n_points, len(confidence)),
    )


def interpolate(on_grid: Array, confidence: Array) -> Array:
    """Return what is between the grid points of the first axis at each confidence."""
    left, share = split(confidence, len(on_grid))
    return (on_grid[left].T * (1 - share) + on_grid[left + 1].T * share).T


def kernel(k: int | NDArray[np.int_], n_points: int) -> Array:
    """Return a Gaussian of bandwidth k/1024 around the middle of a grid."""
    sigma = k / N_BANDWIDTHS
    height = 1 / (np.sqrt(2 * np.pi) * sigma)
    return height * np.exp(-((np.linspace(0, 1, n_points) - 0.5) ** 2) / (2 * sigma**2))


@lru_cache(maxsize=COARSEST)
def smoothing(k: int) -> sparse.csr_matrix:
    """Return smoothing by k/1024 as a matrix (mesh points, grid points), any k."""
    return smoothing_at(mesh(k), k)


def smoothing_at(at: Array, k: int) -> sparse.csr_matrix:
    """Return smoothing by k/1024, read at some points of [0, 1]: (points, grid points).

    The grid is mirrored once at 0 and once at 1.
    """
    n_points = n_grid_points(k)
    shape = kernel(k, n_points)
    centre = (n_points - 1) // 2
    left, share = split(at, n_points)
    reach = min(centre, 9 * k * n_points // N_BANDWIDTHS)  # beyond 9 sigma it is below 1e-17
    offset = np.arange(-reach, reach + 3)
    padded = np.concatenate([[0.0], shape, np.zeros(3)])
    at_left, at_right = padded[centre + offset + 1], padded[centre + offset]
    values = np.outer(1 - share, at_left) + np.outer(share, at_right)
    point = np.abs(left[:, None] + offset)
    point = np.where(point < n_points, point, 2 * (n_points - 1) - point)
    row = np.broadcast_to(np.arange(len(at))[:, None], point.shape)
    return sparse.csr_matrix(
        (values.ravel(), (row.ravel(), point.ravel())), shape=(len(at), n_points)
    )

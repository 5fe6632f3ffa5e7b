"""Smoothing on the shared grid, folded at its middle: as products of small matrices.

The grid of `persistcal.evaluation.grids`, its meshes and its kernels look the same from either
end; so what lies on it is folded into an even half (each point plus its mirror image) and an
odd one (minus), and each is smoothed by itself, at half the cost.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dct

from persistcal.evaluation.grids import (
    GRID,
    HALF,
    N_BANDWIDTHS,
    Array,
    interpolate,
    kernel,
    mesh,
    split,
)

# The kernel is cut at a distance of 0.5. Below this k the cut is low enough for the kernel to
# have few frequencies: leaving the rest out changes SmoothECE by less than 1e-9.
FREQUENCIES_END = 95
WIDE_RANK = 16  # kernels that the wider ones are combinations of, to 1e-12,
N_SPANNING = 60  # found from as many of them


class Smoother(NamedTuple):
    """Smoothing of the even and of the odd half of what lies on the grid.

    Attributes
    ----------
    even, odd : ndarray of shape (n_halved, n_mesh_halved)
        From grid points, or from cosines, to the mesh points up to the middle.
    times : ndarray of shape (n_mesh_halved,)
        2 for each mesh point that has a mirror image, 1 for one in the middle.
    """

    even: Array
    odd: Array
    times: Array


def fold(on_grid: Array) -> tuple[Array, Array]:
    """Return the even and the odd half of the first axis."""
    return fold_even(on_grid), on_grid[:HALF] - on_grid[: HALF - 2 : -1]


def fold_even(on_grid: Array) -> Array:
    """Return the even half of the first axis, in which the middle counts twice."""
    return on_grid[:HALF] + on_grid[: HALF - 2 : -1]


def _half_mesh(k: int) -> tuple[Array, Array]:
    """Return the mesh points up to the middle, and `Smoother.times` of them."""
    points = mesh(k)
    half = (len(points) + 1) // 2
    times = np.full(half, 2.0)
    times[len(points) // 2 :] = 1
    return points[:half], times


def _read_half(kernel: Array, at: Array) -> tuple[Array, Array]:
    """Return smoothing by a kernel, given up to its cut, of the folded grid.

    Two matrices (HALF, n_mesh_halved) as in `Smoother`, linear in the kernel.
    """
    by_distance = np.zeros(2 * GRID)
    by_distance[:HALF] = kernel
    # rows are grid points that are read: kernels around each of the others, and their images
    around = sliding_window_view(np.r_[by_distance[GRID - 1 : 0 : -1], by_distance], GRID)
    left, share = split(at, GRID)
    points = np.concatenate([left, left + 1])
    smoothed = around[GRID - 1 - points]
    smoothed[:, 1:] += sliding_window_view(by_distance, GRID)[points, 1:]
    beyond = 2 * (GRID - 1) - np.add.outer(points, np.arange(HALF, GRID - 1))
    smoothed[:, HALF : GRID - 1] += by_distance[beyond]
    at_left, at_right = np.split(smoothed, 2)
    read = at_left * (1 - share)[:, None] + at_right * share[:, None]
    even, odd = (half / 2 for half in fold(read.T))
    even[-1] /= 2  # the point in the middle was doubled when it was folded
    return even, odd


class WideKernels(NamedTuple):
    """Smoothing of the folded grid from `FREQUENCIES_END` on, by combinations of a few kernels.

    Attributes
    ----------
    coefficients : ndarray of shape (n_bandwidths, rank)
    even, odd : ndarray of shape (HALF, rank, n_mesh_halved)
        As in `Smoother`; all these bandwidths share a mesh.
    times : ndarray of shape (n_mesh_halved,)
    share : ndarray of shape (HALF, rank)
        What `density_share` is a combination of.
    """

    coefficients: Array
    even: Array
    odd: Array
    times: Array
    share: Array


@lru_cache(maxsize=1)  # of 13 MB
def wide_kernels() -> WideKernels:
    """Return what the wide kernels are made of, to 1e-12."""
    kernels = kernel(np.arange(FREQUENCIES_END, N_BANDWIDTHS + 1)[:, None], GRID)[:, HALF - 1 :]
    some = np.geomspace(1, len(kernels), N_SPANNING).astype(int) - 1
    shapes = np.linalg.svd(kernels[some], full_matrices=False)[2][:WIDE_RANK]
    at, times = _half_mesh(FREQUENCIES_END)
    halves = [_read_half(shape, at) for shape in shapes]
    even, odd = (
        np.ascontiguousarray(np.stack([half[i] for half in halves], axis=1)) for i in (0, 1)
    )
    return WideKernels(kernels @ shapes.T, even, odd, times, even @ (times / times.sum()))


@lru_cache(maxsize=256)  # of 0.8 MB; a contrast set's replicates visit about a hundred
def wide_smoother(k: int) -> Smoother:
    """Return smoothing by k/1024, from `FREQUENCIES_END` on, of the folded grid."""
    of = wide_kernels()
    share = of.coefficients[k - FREQUENCIES_END]
    return Smoother(share @ of.even, share @ of.odd, of.times)


def n_frequencies(k: int) -> int:
    """Return how many cosines make up the kernel to 1e-12 at k/1024, a multiple of 16."""
    return 16 * int(np.ceil(2.37 * N_BANDWIDTHS / k / 16))


@lru_cache(maxsize=32)
def _cosines(n: int) -> Array:
    """Return the first n cosines on the grid: (GRID, n)."""
    return np.cos(np.outer(np.arange(GRID), np.pi * np.arange(n) / (GRID - 1)))


@lru_cache(maxsize=32)
def waves(n: int) -> tuple[Array, Array]:
    """Return the first n cosines on the folded grid: the even ones, and the odd ones."""
    on_grid = _cosines(n)[:HALF].copy()
    on_grid[0] /= 2  # mirroring doubles all points but those at the ends
    on_grid[-1] /= 2  # and folding the one in the middle
    return np.ascontiguousarray(on_grid[:, ::2]), np.ascontiguousarray(on_grid[:, 1::2])


@lru_cache(maxsize=512)  # of 0.1 MB, or up to 1 MB where k is small
def wave_smoother(k: int) -> Smoother:
    """Return smoothing by k/1024, below `FREQUENCIES_END`, of `n_frequencies(k)` cosines.

    On a mirrored grid, a symmetric kernel multiplies each cosine by a factor.
    """
    at, times = _half_mesh(k)
    half = np.zeros(GRID)
    half[:HALF] = kernel(k, GRID)[HALF - 1 :]
    n = n_frequencies(k)
    factor = dct(half, type=1)[:n] * 2 / (GRID - 1)
    factor[0] /= 2
    smoothed = (interpolate(_cosines(n), at) * factor).T
    return Smoother(
        np.ascontiguousarray(smoothed[::2]), np.ascontiguousarray(smoothed[1::2]), times
    )


@lru_cache(maxsize=N_BANDWIDTHS)
def density_share(k: int) -> Array:
    """Return how much of an answer on the folded grid is read, as a mean over the mesh.

    For bandwidths k/1024 from `COARSEST` on. It is 1 but near the ends, to which the mesh
    gives half a step too much.
    """
    if k >= FREQUENCIES_END:
        of = wide_kernels()
        return np.asarray(of.share @ of.coefficients[k - FREQUENCIES_END])
    smoother = wave_smoother(k)
    even = waves(n_frequencies(k))[0] @ smoother.even
    return np.asarray(even @ (smoother.times / smoother.times.sum()))


class Shares(NamedTuple):
    """`density_share` of a range of bandwidths, for a folded grid: coefficients @ basis."""

    coefficients: Array
    basis: Array


@lru_cache(maxsize=256)
def density_shares(lowest: int, end: int) -> Shares:
    """Return `density_share` from lowest/1024 to before end/1024, to 1e-11."""
    shares = np.array([density_share(k) for k in range(lowest, end)])
    u, s, v = np.linalg.svd(shares, full_matrices=False)
    rank = int(np.sum(s > 1e-11))
    return Shares(u[:, :rank] * s[:rank], v[:rank])

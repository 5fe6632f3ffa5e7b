"""Smoothing by reflected Gaussians on the grids of `relplot`, as products of matrices.

Answers at confidences in [0, 1] are split between the two nearest points of a grid, smoothed
there, and read at the points of a coarser mesh. Bandwidths are k/1024; from `COARSEST` on, all
share the grid of `GRID` points. That grid, its meshes and its kernels look the same from either
end; so what lies on it is folded into an even half (each point plus its mirror image) and an
odd one (minus), and each is smoothed by itself, at half the cost.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import sparse
from scipy.fft import dct

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


# The kernel is cut at a distance of 0.5. Below this k the cut is low enough for the kernel to
# have few frequencies: leaving the rest out changes SmoothECE by less than 1e-9.
FREQUENCIES_END = 95
WIDE_RANK = 16  # kernels that the wider ones are combinations of, to 1e-12,
N_SPANNING = 60  # found from as many of them


class Smoother(NamedTuple):
    """Smoothing of the even and of the odd half of what lies on the grid.

    `even` and `odd`, (n_halved, n_mesh_halved), lead from grid points, or from cosines, to the
    mesh points up to the middle; `times` is 2 for each of those with a mirror image, 1 for the
    middle.
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

    Two matrices (HALF, n_mesh_halved) as in `Smoother`, linear in the kernel. `at` is below the
    middle, where the mirror image beyond the far end is out of reach.
    """
    by_distance = np.zeros(2 * GRID)
    by_distance[:HALF] = kernel
    # rows are grid points that are read: kernels around each of the others, and their images
    around = sliding_window_view(np.r_[by_distance[GRID - 1 : 0 : -1], by_distance], GRID)
    left, share = split(at, GRID)
    points = np.concatenate([left, left + 1])
    smoothed = around[GRID - 1 - points]
    smoothed[:, 1:] += sliding_window_view(by_distance, GRID)[points, 1:]
    at_left, at_right = np.split(smoothed, 2)
    read = at_left * (1 - share)[:, None] + at_right * share[:, None]
    even, odd = (half / 2 for half in fold(read.T))
    even[-1] /= 2  # the point in the middle was doubled when it was folded
    return even, odd


class WideKernels(NamedTuple):
    """Smoothing of the folded grid from `FREQUENCIES_END` on, by combinations of a few kernels.

    `coefficients` are of shape (n_bandwidths, rank); `even` and `odd`, (HALF, rank,
    n_mesh_halved), and `times` as in `Smoother`, since all these bandwidths share a mesh;
    `density_share` is a combination of `share`, (HALF, rank).
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


@lru_cache(maxsize=256)
def density_shares(lowest: int, end: int) -> tuple[Array, Array]:
    """Return `density_share` from lowest/1024 to before end/1024 as coefficients and a basis.

    Their product is right to 1e-11.
    """
    shares = np.array([density_share(k) for k in range(lowest, end)])
    u, s, v = np.linalg.svd(shares, full_matrices=False)
    rank = int(np.sum(s > 1e-11))
    return u[:, :rank] * s[:rank], v[:rank]

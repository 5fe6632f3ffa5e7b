"""SmoothECE with automatic bandwidth, for many weightings of the same answers at once.

The residuals (confidence minus correctness) are smoothed by a reflected Gaussian. SmoothECE is
the mean absolute smoothed residual at the bandwidth that equals this mean. Grids, truncation
and search follow the reference implementation, `relplot.smECE`: answers are split between the
two nearest points of a grid, smoothed there, and read at the points of a coarser mesh.
Bandwidths are k/1024; the narrowest one that is at least SmoothECE is chosen.

On a mirrored grid a symmetric kernel multiplies each cosine by a factor, so smoothing is a
cosine transform with a row of factors for each bandwidth. Bandwidths below 11/1024 have finer
grids. A bandwidth that needs few cosines and few points of the mesh is one product of matrices.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.fft import dct, irfft, rfft

from persistcal.evaluation.predictions import Array, Mask

Integers = NDArray[np.intp]

N_BANDWIDTHS = 1024
NARROWEST = 2  # k; narrower bandwidths, below 0.001, are never tried
COARSEST = 11  # the smallest k with a grid of GRID points; all larger k use the same grid
GRID = 1001
DENSITY_FLOOR = 1e-4  # added to the smoothed density, in answers
START = (64, -0.5)  # of a search, see `_search`
CHUNK = 200  # columns at a time, so that their grids stay in the cache; no power of 2
LARGEST_CHUNK = 2**22  # weights at a time, if that leaves 16 columns
SMALL = 2**20  # labels up to which NumPy is fast enough, without a compiled loop
N_SECANTS = 6  # steps of the search before it halves
N_PILOTS = 10  # columns whose searches show where the others start
# Bandwidths k whose smoothing is a product of matrices: kernels of wider ones are not yet 0 at
# the distance .5, where they are cut, so they need all cosines; narrower ones need a fine mesh
IN_PRODUCTS = range(20, 64)
FEW = 8  # equal answers are merged if there are more answers than this per distinct answer


def smooth_ece(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Calibration error that needs no bins, in [0, 1], under many weightings at once.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_answers,)
        Stated probability that each answer is correct, in [0, 1]; and 0 or 1.
    weights : array-like of shape (n_answers,) or (n_answers, n_columns), optional
        Multiplicities, at least 0.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        NaN where the weights sum to 0.

    References
    ----------
    .. [1] Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams
       via Kernel Smoothing", ICLR 2024. https://arxiv.org/abs/2309.12236

    Examples
    --------
    Half of the answers at confidence 0.9 are wrong:

    >>> round(float(smooth_ece([0.9] * 10, [0, 1] * 5)), 3)
    0.4
    """
    stated = np.asarray(confidence, float)
    weight = np.ones(len(stated)) if weights is None else np.asarray(weights)
    residual = stated - np.asarray(correct, float)
    columns = weight[:, None] if weight.ndim == 1 else weight
    stated, residual, distinct = _distinct(stated, residual, columns)
    column: slice | Integers = slice(None)
    if len(distinct) < len(columns):  # then whole columns are often equal, too
        distinct, column = np.unique(distinct, axis=1, return_inverse=True)
    order = np.argsort(stated)  # neighbours on the grid are read one after the other
    stated, residual = stated[order], residual[order]
    values, start = np.empty(distinct.shape[1]), START
    width = int(np.clip(LARGEST_CHUNK // max(1, len(stated)), 16, CHUNK))
    for first in range(0, len(values), width):
        chunk = distinct[:, first : first + width][order].astype(float)
        on_grids = OnGrids(chunk.sum(axis=0), partial(_place_weighted, stated, residual, chunk))
        values[first : first + width], start = _search(on_grids, slice(None), start)
    return values[column].reshape(weight.shape[1:])[()]


class Labellings:
    """The same answers under many labellings: SmoothECE of a block of them at a time.

    >>> labels = np.array([[True, True], [True, False]])
    >>> Labellings(np.full(2, 0.75)).smooth_ece(labels).round(3)
    array([0.25, 0.25])
    """

    def __init__(self, confidence: Array) -> None:
        """Arrange answers by their confidences, (n_answers,)."""
        self.confidence = confidence
        self._order = np.argsort(confidence, kind="stable")
        self._stated = confidence[self._order]
        self._levels = np.flatnonzero(np.diff(self._stated, prepend=-1.0))
        self._own: dict[int, list[Array]] = {}  # confidences and masses on grids
        self._start = START

    def draw(self, uniform: Array) -> Array:
        """Return `smooth_ece` under labels: right where a number is below the confidence."""
        return self.smooth_ece(uniform < self.confidence[:, None])

    def smooth_ece(self, correct: Mask) -> Array:
        """Return `smooth_ece` under each column of labels, (n_answers, n_columns)."""
        labels, column = correct[self._order], np.arange(correct.shape[1])
        if len(self._levels) <= FEW:  # then columns are often equal
            right = np.add.reduceat(labels, self._levels, axis=0, dtype=int)
            _, chosen, column = np.unique(right, axis=1, return_index=True, return_inverse=True)
            labels = labels[:, chosen]
        n_answers = np.full(labels.shape[1], len(labels))
        on_grids = OnGrids(n_answers, partial(self._place, labels))
        found = np.empty(labels.shape[1])
        n_pilots = N_PILOTS if self._start == START else 0
        for columns in (slice(0, n_pilots), slice(n_pilots, None)):
            found[columns], self._start = _search(on_grids, columns, self._start)
        return found[column]

    def _place(self, labels: Mask, n_points: int) -> tuple[Array, Array]:
        """Return residuals and masses on a grid, (n_points, n_columns) and (n_points, 1)."""
        if n_points not in self._own:
            both = [self._stated, np.ones(len(self._stated))]
            self._own[n_points] = [
                place_sum(self._stated, of, n_points)[:, None] for of in both
            ]
        stated, masses = self._own[n_points]
        return stated - place_columns(self._stated, labels, n_points), masses


def _distinct(
    confidence: Array, residual: Array, weights: NDArray
) -> tuple[Array, Array, NDArray]:
    """Add up the weights of equal answers, if few answers are distinct."""
    if weights.shape[1] == 1:
        return confidence, residual, weights
    order = np.lexsort((residual, confidence))
    both = np.stack([confidence, residual])[:, order]
    first = np.flatnonzero((np.diff(both, prepend=np.nan) != 0).any(axis=0))
    if FEW * len(first) >= len(confidence):
        return confidence, residual, weights
    dtype = np.uint32 if weights.dtype == np.uint8 else float
    summed = [group.sum(axis=0, dtype=dtype) for group in np.split(weights[order], first[1:])]
    return confidence[order[first]], residual[order[first]], np.array(summed)


class OnGrids:
    """Answers under several weightings or labellings, the columns, in cosines on grids.

    `n_answers`, (n_columns,), sums their weights. `place` returns the residuals and the number
    of answers at the points of a grid of any size, (n_points, n_columns); the numbers have one
    column if they are the same for all.
    """

    def __init__(self, n_answers: Array, place: Callable[[int], tuple[Array, Array]]) -> None:
        self.n_answers, self._place = n_answers, place
        self._spectra: dict[int, list[Array]] = {}

    def spectra(self, n_points: int) -> list[Array]:
        """Return the cosine transforms of residuals and numbers, (n_columns, n_points)."""
        if n_points not in self._spectra:
            placed = self._place(n_points)
            self._spectra[n_points] = [
                dct(np.ascontiguousarray(values.T), type=1) for values in placed
            ]
        return self._spectra[n_points]

    def smooth_ece(self, k: Integers, columns: Integers) -> Array:
        """Return SmoothECE of some columns, each at its bandwidth k/1024."""
        values, order = np.empty(len(columns)), np.argsort(k, kind="stable")
        bandwidths, first = np.unique(k[order], return_index=True)
        for bandwidth, members in zip(bandwidths, np.split(order, first[1:]), strict=True):
            smoothing, chosen = _smoothing(int(bandwidth)), columns[members]
            residuals, masses = self.spectra(len(smoothing.densities))
            density = (masses[chosen] if len(masses) > 1 else masses) @ smoothing.densities
            read = smoothing.read(residuals, chosen)
            values[members] = np.abs(read).mean(axis=1) / (density + DENSITY_FLOOR)
        return values


def _place_weighted(
    confidence: Array, residual: Array, weights: Array, n_points: int
) -> tuple[Array, Array]:
    """Return residuals and masses on a grid, (n_points, n_columns), of weighted answers."""
    values = residual, np.ones(len(weights))
    if weights.shape[1] == 1:
        placed = [place_sum(confidence, of * weights[:, 0], n_points)[:, None] for of in values]
    else:
        placed = [place(confidence, of, n_points) @ weights for of in values]
    return placed[0], placed[1]


def _search(
    on_grids: OnGrids, columns: slice, start: tuple[int, float]
) -> tuple[Array, tuple[int, float]]:
    """Return SmoothECE of some columns, and a start for the search on similar columns.

    Each column's search ends at the bandwidth of relplot's bisection: the narrowest k/1024 that
    is at least the SmoothECE. A start is the first k, and how steeply SmoothECE falls there.
    """
    chosen = np.arange(len(on_grids.n_answers))[columns]
    n = len(chosen)
    if n == 0:
        return np.empty(0), start
    # the widest k known to be too narrow, and the narrowest k known not to be
    narrow, wide = np.full(n, NARROWEST - 1), np.full(n, N_BANDWIDTHS)
    guess, slope = np.full(n, start[0]), np.full(n, start[1])
    value, position = np.full(n, np.nan), np.zeros(n, int)  # SmoothECE and its k
    n_steps = 0
    while len(open_ := np.flatnonzero((wide - narrow > 1) | (position != wide))):
        n_steps += 1
        k = (guess if n_steps <= N_SECANTS else (narrow + wide) // 2)[open_]
        lowest = narrow[open_] + 1
        k = np.clip(k, lowest, np.maximum(lowest, wide[open_] - 1))
        error, sigma = on_grids.smooth_ece(k, chosen[open_]), k / N_BANDWIDTHS
        step = sigma - position[open_] / N_BANDWIDTHS
        if n_steps > 1:
            secant = np.divide(error - value[open_], step, out=slope[open_], where=step != 0)
            slope[open_] = secant.clip(-20, 0.2)
        value[open_], position[open_] = error, k
        # Smoothing wider lowers SmoothECE but for truncation and grids, which raise it by less
        # than a quarter per unit. The bandwidth that it equals is between sigma and `bound`.
        bound = error + (error - sigma) / 3
        above = np.ceil(N_BANDWIDTHS * np.maximum(sigma, bound)).astype(int)
        below = np.floor(N_BANDWIDTHS * np.minimum(sigma, bound)).astype(int)
        wide[open_] = np.minimum(wide[open_], above)
        narrow[open_] = np.minimum(np.maximum(narrow[open_], below), wide[open_] - 1)
        crossing = sigma + (error - sigma) / (1 - slope[open_])
        guess[open_] = np.ceil(N_BANDWIDTHS * crossing).astype(int)
    value[on_grids.n_answers[chosen] == 0] = np.nan
    return value, (int(np.median(position)), float(np.median(slope)))


def n_grid_points(k: int) -> int:
    """Return the number of grid points at the bandwidth k/1024."""
    return max(2000, round(20 * N_BANDWIDTHS / k)) // 2 + 1


def _n_mesh(k: int | Integers) -> Integers:
    return np.maximum(np.round(10 * N_BANDWIDTHS / np.asarray(k)), 200).astype(int)


def mesh(k: int) -> Array:
    """Return where smoothed values are read at the bandwidth k/1024."""
    return np.linspace(0, 1, int(_n_mesh(k)))


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


def place_sum(confidence: Array, values: Array, n_points: int) -> Array:
    """Return the sums of values at the points of a grid, (n_points,)."""
    left, share = split(confidence, n_points)
    placed = np.bincount(left, (1 - share) * values, n_points).astype(float)
    placed[1:] += np.bincount(left, share * values, n_points)[:-1]
    return placed


def place_columns(confidence: Array, columns: NDArray, n_points: int) -> Array:
    """Return the sums of labels or counts at the points of a grid, (n_points, n_columns).

    Confidences are in ascending order.
    """
    if columns.size <= SMALL:
        ones = np.ones(len(confidence))
        return np.asarray(place(confidence, ones, n_points) @ columns.astype(float))
    from persistcal.evaluation.loops import sum_bins

    left, share = split(confidence, n_points)
    first = np.flatnonzero(np.diff(left, prepend=-1))
    # placing is linear between two points, so two sums are enough
    sums, sums_apart = sum_bins(columns, share, first)
    placed = np.zeros((n_points, columns.shape[1]))
    placed[left[first]] = sums - sums_apart
    placed[left[first] + 1] += sums_apart
    return placed


def _kernel(k: int | NDArray[np.int_], n_points: int) -> Array:
    """Return a Gaussian of bandwidth k/1024 around the middle of a grid."""
    sigma = k / N_BANDWIDTHS
    height = 1 / (np.sqrt(2 * np.pi) * sigma)
    return height * np.exp(-((np.linspace(0, 1, n_points) - 0.5) ** 2) / (2 * sigma**2))


def smoothing_at(bandwidth: Array, k: int) -> sparse.csr_matrix:
    """Return smoothing by k/1024, read at some points of [0, 1]: (points, grid points).

    The grid is mirrored once at 0 and once at 1.
    """
    n_points = n_grid_points(k)
    shape = _kernel(k, n_points)
    centre = (n_points - 1) // 2
    left, share = split(bandwidth, n_points)
    reach = min(centre, 9 * k * n_points // N_BANDWIDTHS)  # beyond 9 sigma it is below 1e-17
    offset = np.arange(-reach, reach + 3)
    padded = np.concatenate([[0.0], shape, np.zeros(3)])
    at_left, at_right = padded[centre + offset + 1], padded[centre + offset]
    values = np.outer(1 - share, at_left) + np.outer(share, at_right)
    point = np.abs(left[:, None] + offset)
    point = np.where(point < n_points, point, 2 * (n_points - 1) - point)
    row = np.broadcast_to(np.arange(len(bandwidth))[:, None], point.shape)
    return sparse.csr_matrix(
        (values.ravel(), (row.ravel(), point.ravel())), shape=(len(bandwidth), n_points)
    )


class Smoothing(NamedTuple):
    """Smoothing by a bandwidth, in cosines on its grid, read at its mesh.

    `factors` are of the cosines, and `densities` are means of smoothed cosines over the mesh.
    The mesh is between the points `left` and `left` + 1 of the grid, by `share`. `product`,
    (n_cosines, n_mesh), smooths and reads at once; it is missing outside `IN_PRODUCTS`.
    """

    factors: NDArray
    densities: Array
    left: Integers
    share: Array
    product: Array | None

    def read(self, spectra: Array, rows: Integers) -> Array:
        """Return smoothed values at the mesh of some rows of cosines."""
        if self.product is not None:
            return np.asarray(spectra[rows, : len(self.product)] @ self.product)
        smoothed, period = spectra[rows] * self.factors, 2 * (spectra.shape[1] - 1)
        is_real = np.isrealobj(smoothed)
        values = dct(smoothed, type=1) / period if is_real else irfft(smoothed, period)
        return values[:, self.left] * (1 - self.share) + values[:, self.left + 1] * self.share


@lru_cache(maxsize=256)
def _smoothing(k: int) -> Smoothing:
    """Return smoothing by k/1024.

    A grid with an even number of points has no point in the middle, where the kernel is
    highest, so its factors are complex.
    """
    n_points, points = n_grid_points(k), mesh(k)
    shape = np.zeros(2 * (n_points - 1))  # of the grid and its mirror image
    shape[np.arange(n_points) - (n_points - 1) // 2] = _kernel(k, n_points)
    factors = rfft(shape).conj()
    if n_points % 2:
        factors = factors.real
    read = np.zeros(len(shape))
    read[:n_points] = place_sum(points, np.full(len(points), 1 / len(points)), n_points)
    densities = (factors * rfft(read).conj()).real * 2 / len(shape)
    densities[[0, -1]] /= 2
    smoothing = Smoothing(factors, densities, *split(points, n_points), None)
    if k not in IN_PRODUCTS:
        return smoothing
    # factors of further cosines are below 1e-15
    n_cosines = int(np.ceil(8.5 / np.pi * N_BANDWIDTHS / k))
    cosines = np.eye(n_cosines, n_points)
    return smoothing._replace(product=smoothing.read(cosines, np.arange(n_cosines)))

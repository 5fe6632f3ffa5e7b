"""SmoothECE with automatic bandwidth, for many weightings of the same answers at once.

The residuals (confidence minus correctness) are smoothed by a reflected Gaussian. SmoothECE is
the mean absolute smoothed residual at the bandwidth that equals this mean. Grids, truncation
and search follow the reference implementation, `relplot.smECE`: answers are split between the
two nearest points of a grid, smoothed there, and read at the points of a coarser mesh.
Bandwidths are k/1024; the narrowest one that is at least SmoothECE is chosen.

On a mirrored grid a symmetric kernel multiplies each cosine by a factor, so smoothing is a
cosine transform with a row of factors for each bandwidth. Bandwidths below 11/1024 have finer
grids, and a sparse matrix each.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.fft import dct

from persistcal.evaluation.predictions import Array, Mask

Integers = NDArray[np.intp]

N_BANDWIDTHS = 1024
NARROWEST = 2  # k; narrower bandwidths, below 0.001, are never tried
COARSEST = 11  # the smallest k with a grid of GRID points; all larger k use the same grid
GRID = 1001
DENSITY_FLOOR = 1e-4  # added to the smoothed density, in answers
CHUNK = 200  # columns at a time, so that their grids stay in the cache; no power of 2
LARGEST_CHUNK = 2**22  # weights at a time, if that leaves 16 columns
SMALL = 2**21  # labels up to which NumPy is fast enough, without a compiled loop
N_SECANTS = 6  # steps of the search before it halves
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
    grids = sparse.vstack(
        [place(stated, values, GRID) for values in (residual, np.ones(len(stated)))]
    )
    values, start = np.empty(distinct.shape[1]), (64, -0.5)
    width = int(np.clip(LARGEST_CHUNK // max(1, len(stated)), 16, CHUNK))
    for first in range(0, len(values), width):
        chunk = distinct[:, first : first + width][order].astype(float)
        residuals, masses = np.split(np.ascontiguousarray((grids @ chunk).T), [GRID], axis=1)
        place_at = partial(_place_weighted, stated, residual, chunk)
        values[first : first + width], start = _search(
            OnGrid(dct(residuals, type=1), masses, place_at), start
        )
    return values[column].reshape(weight.shape[1:])[()]


class Labellings:
    """The same answers under many labellings: SmoothECE of a block of them at a time.

    Neighbours that are between the same two points of every grid are a bin. Placing is linear
    in between, so a bin needs two sums: of residuals, and of residuals times the distance of
    their confidence from the lowest one.

    >>> labels = np.array([[True, True], [True, False]])
    >>> Labellings(np.full(2, 0.75)).smooth_ece(labels).round(3)
    array([0.25, 0.25])
    """

    def __init__(self, confidence: Array) -> None:
        """Arrange answers by their confidences, (n_answers,)."""
        self._confidence = confidence
        self._order = np.argsort(confidence, kind="stable")
        stated = confidence[self._order]
        grids = {GRID, *map(n_grid_points, range(NARROWEST, COARSEST))}
        firsts = [np.unique(split(stated, n)[0], return_index=True)[1] for n in grids]
        self._first = np.unique(np.concatenate(firsts))
        self._lowest = stated[self._first]
        self._times = np.diff(np.append(self._first, len(stated)))
        self._distance = stated - np.repeat(self._lowest, self._times)
        weighted = [np.ones(len(stated)), self._distance, stated, stated * self._distance]
        self._sums = [np.add.reduceat(values, self._first)[:, None] for values in weighted]
        self._matrices: dict[int, tuple[sparse.csr_matrix, sparse.csr_matrix]] = {}
        self._start = (64, -0.5)

    def draw(self, uniform: Array) -> Array:
        """Return `smooth_ece` under labels: right where a number is below the confidence."""
        return self.smooth_ece(uniform < self._confidence[:, None])

    def smooth_ece(self, correct: Mask) -> Array:
        """Return `smooth_ece` under each column of labels, (n_answers, n_columns)."""
        labels = correct[self._order]
        if labels.size <= SMALL:
            numbers = labels.astype(float)
            right = np.add.reduceat(numbers, self._first, axis=0)
            numbers *= self._distance[:, None]
            right_apart = np.add.reduceat(numbers, self._first, axis=0)
        else:
            from persistcal.evaluation.loops import sum_bins

            right, right_apart = sum_bins(labels, self._distance, self._first)
        column = np.arange(labels.shape[1])
        if len(self._first) <= FEW:  # then columns are often equal
            together = np.concatenate([right, right_apart])
            _, chosen, column = np.unique(
                together, axis=1, return_index=True, return_inverse=True
            )
            right, right_apart = right[:, chosen], right_apart[:, chosen]
        residuals, residuals_apart = self._sums[2] - right, self._sums[3] - right_apart

        placed: dict[int, Array] = {}

        def place_at(n_points: int, columns: Integers) -> tuple[Array, Array]:
            if n_points not in placed:
                placed[n_points] = self._place(residuals, residuals_apart, n_points)
            masses = self._place(self._sums[0], self._sums[1], n_points)
            return placed[n_points][:, columns], masses

        on_grid, masses = place_at(GRID, np.arange(residuals.shape[1]))
        spectrum = dct(np.ascontiguousarray(on_grid.T), type=1)
        found, self._start = _search(OnGrid(spectrum, masses.T, place_at), self._start)
        return found[column]

    def _place(self, sums: Array, sums_apart: Array, n_points: int) -> Array:
        """Place the sums of bins on a grid: (n_points, n_columns)."""
        if n_points not in self._matrices:
            ones = np.ones(len(self._lowest))
            self._matrices[n_points] = (
                place(self._lowest, ones, n_points),
                place(self._lowest, ones, n_points, moved=n_points - 1),
            )
        at_lowest, further = self._matrices[n_points]
        placed = at_lowest @ sums
        return placed + further @ sums_apart if sums_apart.any() else placed


def _distinct(
    confidence: Array, residual: Array, weights: NDArray
) -> tuple[Array, Array, NDArray]:
    """Add up the weights of equal answers, if few answers are distinct."""
    order = np.lexsort((residual, confidence))
    both = np.stack([confidence, residual])[:, order]
    first = np.flatnonzero((np.diff(both, prepend=np.nan) != 0).any(axis=0))
    if FEW * len(first) >= len(confidence):
        return confidence, residual, weights
    dtype = np.uint32 if weights.dtype == np.uint8 else float
    summed = [group.sum(axis=0, dtype=dtype) for group in np.split(weights[order], first[1:])]
    return confidence[order[first]], residual[order[first]], np.array(summed)


class OnGrid(NamedTuple):
    """Answers under several weightings or labellings, the columns, placed on grids.

    `spectrum`, the cosine transform of the residuals on the grid, and `masses`, the number of
    answers on the grid, have the shape (n_columns, GRID); `masses` has one row if it is the
    same for all columns. `place_at` returns both for some columns on a grid of any size, with
    a column per column, before the transform.
    """

    spectrum: Array
    masses: Array
    place_at: Callable[[int, Integers], tuple[Array, Array]]

    def smooth_ece(self, k: Integers, columns: Integers) -> Array:
        """Return SmoothECE of some columns, each at its bandwidth k/1024."""
        values = np.empty(len(columns))
        for narrow in np.unique(k[k < COARSEST]):  # they have a mesh each
            members = np.flatnonzero(k == narrow)
            at_points = self.place_at(n_grid_points(int(narrow)), columns[members])
            smoothed, density = (_smoothing(int(narrow)) @ placed for placed in at_points)
            values[members] = np.abs(smoothed).mean(axis=0) / (
                density.mean(axis=0) + DENSITY_FLOOR
            )
        others = np.flatnonzero(k >= COARSEST)
        if not len(others):
            return values
        row, column = k[others] - COARSEST, columns[others]
        smoothed = dct(self.spectrum[column] * _factors()[row], type=1)
        mass = self.masses if len(self.masses) == 1 else self.masses[column]
        density = np.einsum(
            "ij,ij->i", np.broadcast_to(mass, smoothed.shape), _density_shares()[row]
        )
        n_mesh = _n_mesh(k[others])
        for n in np.unique(n_mesh):
            members = np.flatnonzero(n_mesh == n)
            left, share = split(np.linspace(0, 1, n), GRID)
            chosen = smoothed[members]
            read = chosen[:, left] * (1 - share) + chosen[:, left + 1] * share
            values[others[members]] = np.abs(read).mean(axis=1)
        values[others] /= density + DENSITY_FLOOR
        return values


def _place_weighted(
    confidence: Array, residual: Array, weights: Array, n_points: int, columns: Integers
) -> tuple[Array, Array]:
    """Return residuals and masses on a grid, (n_points, n_columns), of weighted answers."""
    chunk = weights[:, columns]
    placed = (place(confidence, v, n_points) for v in (residual, np.ones(len(chunk))))
    residuals, masses = (matrix @ chunk for matrix in placed)
    return residuals, masses


def _search(on_grid: OnGrid, start: tuple[int, float]) -> tuple[Array, tuple[int, float]]:
    """Return SmoothECE of each column, and a start for the search on similar columns.

    Each column's search ends at the bandwidth of relplot's bisection: the narrowest k/1024 that
    is at least the SmoothECE. A start is the first k, and how steeply SmoothECE falls there.
    """
    n = len(on_grid.spectrum)
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
        error, sigma = on_grid.smooth_ece(k, open_), k / N_BANDWIDTHS
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
    value[np.broadcast_to(on_grid.masses.sum(axis=1) == 0, n)] = np.nan
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


def place(
    confidence: Array, values: Array, n_points: int, *, moved: float = 0.0
) -> sparse.csr_matrix:
    """Return the matrix (n_points, n_answers) that puts answers times values on a grid.

    With `moved` it is the change if each share on the right grows by this number.
    """
    left, share = split(confidence, n_points)
    shares = (-moved + 0 * share, moved + 0 * share) if moved else (1 - share, share)
    n = np.arange(len(confidence))
    return sparse.csr_matrix(
        (np.r_[shares[0] * values, shares[1] * values], (np.r_[left, left + 1], np.r_[n, n])),
        shape=(n_points, len(confidence)),
    )


def _kernel(k: int | NDArray[np.int_], n_points: int) -> Array:
    """Return a Gaussian of bandwidth k/1024 around the middle of a grid."""
    sigma = k / N_BANDWIDTHS
    height = 1 / (np.sqrt(2 * np.pi) * sigma)
    return height * np.exp(-((np.linspace(0, 1, n_points) - 0.5) ** 2) / (2 * sigma**2))


@lru_cache(maxsize=COARSEST)
def _smoothing(k: int) -> sparse.csr_matrix:
    """Return smoothing by k/1024 as a matrix (mesh points, grid points), any k."""
    return smoothing_at(mesh(k), k)


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


@lru_cache(maxsize=1)  # 8 MB
def _factors() -> Array:
    """Return the factor of each cosine under smoothing: (bandwidths from COARSEST on, GRID).

    The factors contain the scale of the inverse transform.
    """
    half = np.zeros((N_BANDWIDTHS - COARSEST + 1, GRID))
    k = np.arange(COARSEST, N_BANDWIDTHS + 1)[:, None]
    half[:, : GRID // 2 + 1] = _kernel(k, GRID)[:, GRID // 2 :]  # cut at a distance of 0.5
    return dct(half, type=1) / (2 * (GRID - 1))


@lru_cache(maxsize=1)  # 8 MB
def _density_shares() -> Array:
    """Return the mean over the mesh of an answer at each grid point, smoothed.

    The shape is the same as for `_factors`. Smoothing is linear, so these are columns of the
    transposed matrix; the transposed cosine transform weighs the ends by 1 and the other points
    by 2.
    """
    times = np.full(GRID, 2.0)
    times[[0, -1]] = 1
    sizes = _n_mesh(np.arange(COARSEST, N_BANDWIDTHS + 1)).tolist()
    mean_read = {
        n: place(np.linspace(0, 1, n), np.full(n, 1 / n), GRID).sum(1) for n in set(sizes)
    }
    on_mesh = np.array([np.asarray(mean_read[n]).ravel() for n in sizes])
    return times * dct(_factors() * dct(on_mesh / times, type=1), type=1)

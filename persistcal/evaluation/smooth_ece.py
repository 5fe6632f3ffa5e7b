"""SmoothECE with automatic bandwidth, of many weightings of the same answers at once.

The residuals (confidence minus correctness) are smoothed by a reflected
Gaussian; SmoothECE is the mean absolute smoothed residual, at the bandwidth
that equals it. Grids, truncation and search are those of the reference
implementation, `relplot.smECE`. Smoothing is linear in the weights of the
answers, so thousands of bootstrap replicates are a product of matrices; and the
search visits only bandwidths k/1024.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from persistcal.evaluation.smoothing import (
    COARSEST,
    FREQUENCIES_END,
    GRID,
    N_BANDWIDTHS,
    Array,
    cosine_smoothing,
    cosines,
    n_frequencies,
    n_grid_points,
    place,
    smoothing,
    split,
)

SMALLEST = 0.001  # narrower bandwidths are never tried
DENSITY_FLOOR = 1e-4  # added to the smoothed density, in answers
CHUNK = 256  # columns at a time, to bound memory
N_PILOT = 20


def smooth_ece(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Calibration error that needs no bins.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        Stated probability that each answer is correct, in [0, 1].
    correct : array-like of shape (n_answers,)
        0 or 1.
    weights : array-like of shape (n_answers,), optional
        Multiplicities, at least 0: a weight of 2 is the answer given twice.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect. NaN when the weights sum to 0.

    References
    ----------
    .. [1] Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams
       via Kernel Smoothing", ICLR 2024. https://arxiv.org/abs/2309.12236

    Examples
    --------
    Half of the answers at confidence 0.9 are wrong:

    >>> round(smooth_ece([0.9] * 10, [0, 1] * 5), 3)
    0.4
    """
    n = len(np.asarray(confidence))
    weight = np.ones(n) if weights is None else np.asarray(weights, float)
    return float(smooth_ece_columns(confidence, correct, weight[:, None])[0])


def smooth_ece_columns(confidence: ArrayLike, correct: ArrayLike, weights: NDArray) -> Array:
    """SmoothECE under each column of `weights`.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_answers,)
        As in `smooth_ece`.
    weights : ndarray of shape (n_answers, n_columns)
        A column of multiplicities per replicate.

    Returns
    -------
    ndarray of shape (n_columns,)
        NaN for columns that sum to 0.
    """
    confidence = np.asarray(confidence, float)
    residual = confidence - np.asarray(correct, float)
    values = np.full(weights.shape[1], np.nan)
    defined = weights.any(axis=0)
    if defined.any():
        weights = weights if defined.all() else weights[:, defined]
        values[defined] = _smooth_ece(confidence, residual, weights)
    return values


def _smooth_ece(confidence: Array, residual: Array, weights: NDArray) -> Array:
    n_columns = weights.shape[1]
    if n_columns < 10 * N_PILOT:
        return _Search(_Replicates(confidence, residual, weights)).bisect()
    # A few columns tell where the others' bandwidths are, and how steeply SmoothECE falls
    # there: good guesses leave little to bisect.
    pilot = _Search(_Replicates(confidence, residual, weights[:, :: n_columns // N_PILOT]))
    usual = pilot.bisect()
    middle, step = int(_bandwidth(np.median(usual))), 1 + int(_bandwidth(np.median(usual))) // 8
    near, far = (pilot.evaluate(np.full(len(usual), k)) for k in (middle, middle + step))
    slope = min(0.0, float(np.median(far - near))) * N_BANDWIDTHS / step
    lowest = max(COARSEST, int(0.7 * _bandwidth(usual.min())))
    frequent = _bandwidth(usual.max()) < 0.9 * FREQUENCIES_END
    search = _Search(_Replicates(confidence, residual, weights, lowest if frequent else None))
    sigma = middle / N_BANDWIDTHS
    first = search.evaluate(np.full(n_columns, middle))
    search.evaluate(_bandwidth(sigma + (first - sigma) / (1 - slope)))
    return search.bisect()


def _bandwidth(sigma: ArrayLike) -> NDArray[np.int_]:
    """Return as k the narrowest of the bandwidths k/1024 that is not below sigma."""
    return np.clip(np.ceil(np.asarray(sigma) * N_BANDWIDTHS), 2, N_BANDWIDTHS).astype(int)


class _Replicates:
    """Answers under several weightings, and their SmoothECE at a given bandwidth.

    Weights are first summed over answers of equal confidence, or over the grid
    points where these are fewer; then, if `lowest` is given, over the cosines
    that matter at the bandwidths from `lowest` to `FREQUENCIES_END`.
    """

    def __init__(
        self, confidence: Array, residual: Array, weights: NDArray, lowest: int | None = None
    ) -> None:
        self.confidence, self.residual, self.weights = confidence, residual, weights
        support, rank = np.unique(confidence, return_inverse=True)
        if len(support) > GRID // 2:
            self.points = np.linspace(0, 1, GRID)
            gather = place(confidence, GRID)
        else:
            self.points = support
            gather = sparse.csr_matrix((np.ones(len(rank)), (rank, np.arange(len(rank)))))
        n_waves = n_frequencies(lowest) if lowest else GRID
        self.waves, self.served = None, range(COARSEST, N_BANDWIDTHS + 1)
        if lowest and n_waves < len(self.points):
            self.waves = cosines(self.points, n_waves, at_ends=0.5)
            even_waves = np.ascontiguousarray(self.waves[:, ::2])
            self.served = range(lowest, FREQUENCIES_END)
        gather_residual = gather @ sparse.diags_array(residual)
        # a row per column of weights, so that picking some copies whole rows
        n_reduced = len(self.points) if self.waves is None else n_waves
        # of the density, only the sum over the mesh is needed: odd cosines add up to 0
        self.step = 1 if self.waves is None else 2
        self.density = np.empty((weights.shape[1], len(range(0, n_reduced, self.step))))
        self.residuals = np.empty((weights.shape[1], n_reduced))
        chunk = np.empty((len(weights), min(CHUNK, weights.shape[1])))
        for start in range(0, weights.shape[1], CHUNK):
            rows = slice(start, min(start + CHUNK, weights.shape[1]))
            chunk = chunk[:, : rows.stop - start]
            np.copyto(chunk, weights[:, rows])
            density, residuals = (gather @ chunk).T, (gather_residual @ chunk).T
            if self.waves is None:
                self.density[rows], self.residuals[rows] = density, residuals
            else:
                np.matmul(density, even_waves, out=self.density[rows])
                np.matmul(residuals, self.waves, out=self.residuals[rows])
        self.kernels: dict[int, tuple[Array, Array]] = {}

    def _kernel(self, k: int) -> tuple[Array, Array]:
        """Smoothing by k/1024 of reduced weights, and its sum over the mesh."""
        if k not in self.kernels:
            if self.waves is not None:
                matrix = cosine_smoothing(k, self.waves.shape[1])
            elif len(self.points) == GRID:
                matrix = smoothing(k)
            else:
                left, share = split(self.points, GRID)
                matrix = smoothing(k)
                matrix = (matrix[left].T * (1 - share) + matrix[left + 1].T * share).T
            self.kernels[k] = (matrix, matrix[:: self.step].sum(axis=1))
        return self.kernels[k]

    def smooth_ece(self, k: int, columns: NDArray[np.intp]) -> Array:
        """SmoothECE at the bandwidth k/1024 of some columns."""
        if served := k in self.served:
            matrix, total = self._kernel(k)
        else:
            gather = place(self.confidence, n_grid_points(k))
            smoother, gather_residual = (
                smoothing(k).T,
                gather @ sparse.diags_array(self.residual),
            )
        values = np.empty(len(columns))
        for start in range(0, len(columns), CHUNK):
            some = columns[start : start + CHUNK]
            if served:
                smooth, mass = self.residuals[some] @ matrix, self.density[some] @ total
            else:
                weights = self.weights[:, some].astype(float, order="C")
                smooth = (smoother @ (gather_residual @ weights)).T
                mass = (smoother @ (gather @ weights)).sum(axis=0)
            error = np.abs(smooth, out=smooth).sum(axis=1)
            values[start : start + CHUNK] = error / (mass + DENSITY_FLOOR * smooth.shape[1])
        return values


class _Search:
    """The bandwidth that relplot's bisection finds for each column.

    The bisection visits ten bandwidths; evaluated are only those whose outcome
    does not follow from the ones before.
    """

    def __init__(self, replicates: _Replicates) -> None:
        self.replicates = replicates
        n = len(replicates.density)
        self.value, self.at = np.empty(n), np.zeros(n, int)  # SmoothECE and its bandwidth
        # the bandwidth at which SmoothECE equals it is known to lie between these
        self.lower, self.upper = np.full(n, SMALLEST), np.full(n, np.inf)

    def evaluate(self, k: NDArray[np.int_], columns: NDArray[np.bool_] | None = None) -> Array:
        """Compute SmoothECE at a bandwidth k/1024 per column, of all or some columns."""
        for width in np.unique(k if columns is None else k[columns]):
            some = np.flatnonzero(k == width if columns is None else (k == width) & columns)
            new, sigma = self.replicates.smooth_ece(int(width), some), width / N_BANDWIDTHS
            self.value[some], self.at[some] = new, width
            # Smoothing wider lowers SmoothECE but for truncation and grids, which raise it
            # by less than a quarter per unit: so it equals the bandwidth before `bound`.
            bound, narrow = new + (new - sigma) / 3, sigma < new
            self.lower[some] = np.maximum(self.lower[some], np.where(narrow, sigma, bound))
            self.upper[some] = np.minimum(self.upper[some], np.where(narrow, bound, sigma))
        return self.value.copy()

    def bisect(self) -> Array:
        """Return SmoothECE at the bandwidth of each column."""
        wide, narrow = np.full(len(self.at), N_BANDWIDTHS), np.zeros(len(self.at), int)
        for _ in range(10):
            middle = (wide + narrow) // 2
            sigma = middle / N_BANDWIDTHS
            self.evaluate(middle, (self.lower < sigma) & (sigma < self.upper))
            is_narrow = (sigma <= self.lower) & (sigma < self.upper)
            wide, narrow = np.where(is_narrow, [wide, middle], [middle, narrow])
        return self.evaluate(wide, self.at != wide)

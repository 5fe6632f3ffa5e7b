"""SmoothECE at given bandwidths, of the same answers under many weightings at once.

Smoothing is linear in the weights of the answers, so thousands of bootstrap replicates are a
product of matrices.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.smoothing import (
    COARSEST,
    FREQUENCIES_END,
    GRID,
    HALF,
    N_BANDWIDTHS,
    Array,
    Smoother,
    density_share,
    density_shares,
    fold,
    fold_even,
    n_frequencies,
    n_grid_points,
    place,
    smoothing,
    split,
    wave_smoother,
    waves,
    wide_kernels,
    wide_smoother,
)

DENSITY_FLOOR = 1e-4  # added to the smoothed density, in answers
CHUNK = 128  # columns at a time, so that what belongs to them stays in the cache
LARGEST_CHUNK = 2**22  # weights, if that leaves 16 columns
N_PILOT = 20
LADDER = [11, 14, 18, 23, 30, 38, 48, 62, 79, 94, 130, 180, 250, 350, 500, 700, N_BANDWIDTHS]
FEW_COLUMNS = 256  # so few are seldom at the same bandwidth


class Prospect(NamedTuple):
    """Between which bandwidths most columns are, and how steeply SmoothECE falls there."""

    least: int
    usual: int
    most: int
    slope: float


class Weighted:
    """Answers under several weightings, and their SmoothECE at a given bandwidth.

    Residuals are first summed on the grid, then over the cosines that matter at the
    bandwidths of most columns, which are `served` from these sums. The others begin with the
    answers.
    """

    def __init__(self, confidence: Array, residual: Array, weights: NDArray) -> None:
        from persistcal.evaluation.loops import compilable

        self.confidence, self.residual = confidence, residual
        self.weights = compilable(weights)
        self.width = int(np.clip(LARGEST_CHUNK // max(1, len(weights)), 16, CHUNK))
        self.left, self.share = split(confidence, GRID)
        self.is_small = len(confidence) < HALF and weights.shape[1] <= FEW_COLUMNS
        self.prospect = self._prospect()
        lowest = min(max(COARSEST, self.prospect.least), FREQUENCIES_END - 1)
        end = max(lowest + 1, min(self.prospect.most, FREQUENCIES_END))
        self.served = range(lowest, end)
        even_waves, odd_waves = waves(n_frequencies(lowest))
        self.share_of, shares = density_shares(lowest, end)
        n_columns = weights.shape[1]
        self.even = np.empty((n_columns, even_waves.shape[1]))
        self.odd = np.empty((n_columns, odd_waves.shape[1]))
        self.density = np.empty((n_columns, len(shares)))
        for columns in _in_chunks(n_columns, self.width):
            even, odd, mass = self._folded(columns)
            np.matmul(even.T, even_waves, out=self.even[columns])
            np.matmul(odd.T, odd_waves, out=self.odd[columns])
            np.matmul(mass.T, shares.T, out=self.density[columns])

    def _folded(self, columns: slice | NDArray[np.intp]) -> Array:
        """Return the residuals on the grid, even and odd half, and the answers, even half."""
        from persistcal.evaluation.loops import sum_on_folded_grid

        # a copy, as parts of long rows are read faster when nothing else is done
        weights = np.ascontiguousarray(self.weights[:, columns])
        halves = np.empty((3, HALF, weights.shape[1]))
        sum_on_folded_grid(self.left, self.share, self.residual, weights, *halves)
        return halves

    def _prospect(self) -> Prospect:
        """Evaluate a few columns along the ladder, and see where they cross the bandwidth."""
        even, odd, mass = self._folded(slice(N_PILOT))
        even_waves, odd_waves = waves(n_frequencies(COARSEST))
        even, odd = even.T @ even_waves, odd.T @ odd_waves
        density = _ladder_shares() @ mass
        value = np.array(
            [
                _smooth_ece(even, odd, of, wave_smoother(k))
                for k, of in zip(LADDER, density, strict=True)
            ]
        )
        sigma = np.array(LADDER)[:, None] / N_BANDWIDTHS
        # the first below the bandwidth
        rung = np.clip((value <= sigma).argmax(axis=0), 1, None)
        rise, fall = np.diff(sigma, axis=0)[rung - 1, 0], np.diff(value, axis=0)
        fall = np.minimum(0, fall[rung - 1, np.arange(len(rung))])
        above = (value - sigma)[rung, np.arange(len(rung))]
        crossing = N_BANDWIDTHS * np.maximum(0, sigma[rung, 0] + above * rise / (rise - fall))
        return Prospect(
            least=int(0.85 * crossing.min()),
            usual=max(COARSEST, int(np.median(crossing))),
            most=int(1.15 * crossing.max()) + 2,
            slope=float(np.median(fall / rise)),
        )

    def smooth_ece(self, k: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
        """SmoothECE of some columns, each at its bandwidth k/1024."""
        values = np.empty(len(columns))
        at_once = (k >= FREQUENCIES_END) & self.is_small
        if at_once.any():
            values[at_once] = self._wide.smooth_ece(k[at_once], columns[at_once])
        for width, some in _groups(k, np.flatnonzero(~at_once)):
            values[some] = self._at(width, columns[some])
        return values

    def approximate(self, k: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
        """SmoothECE by the cosines that are there, at any bandwidths but the narrow ones."""
        values = np.empty(len(columns))
        for width, some in _groups(k, np.arange(len(k))):
            values[some] = self._by_waves(width, columns[some])
        return values

    def _at(self, k: int, columns: NDArray[np.intp]) -> Array:
        if k in self.served:
            return self._by_waves(k, columns)
        values = np.empty(len(columns))
        for part in _in_chunks(len(columns), self.width):
            values[part] = self._from_answers(k, columns[part])
        return values

    @cached_property
    def _wide(self) -> "_AtWide":
        return _AtWide(self)

    def is_defined(self) -> NDArray[np.bool_]:
        """Return for each column whether any answer has weight."""
        return np.asarray(np.abs(self.density).sum(axis=1) > 0)

    def _by_waves(self, k: int, columns: NDArray[np.intp]) -> Array:
        nearest = min(max(k, self.served[0]), self.served[-1])
        density = self.density[columns] @ self.share_of[nearest - self.served[0]]
        smoother = wave_smoother(k)
        values = np.empty(len(columns))
        for part in _in_chunks(len(columns), 4 * CHUNK):
            some = columns[part]
            values[part] = _smooth_ece(self.even[some], self.odd[some], density[part], smoother)
        return values

    def _from_answers(self, k: int, columns: NDArray[np.intp]) -> Array:
        if k < COARSEST:
            return self._on_fine_grid(k, columns)
        even, odd, mass = self._folded(columns)
        density = density_share(k) @ mass
        if k >= FREQUENCIES_END:
            return _smooth_ece(even.T, odd.T, density, wide_smoother(k))
        even_waves, odd_waves = waves(n_frequencies(k))
        return _smooth_ece(even.T @ even_waves, odd.T @ odd_waves, density, wave_smoother(k))

    def _on_fine_grid(self, k: int, columns: NDArray[np.intp]) -> Array:
        chunk = self.weights[:, columns].astype(float, order="C")
        smoother = smoothing(k)
        n_points, n_mesh = n_grid_points(k), smoother.shape[0]
        smooth = smoother @ (place(self.confidence, self.residual, n_points) @ chunk)
        share = np.asarray(smoother.sum(axis=0)).ravel() / n_mesh
        density = share @ (place(self.confidence, np.ones(len(chunk)), n_points) @ chunk)
        error = np.abs(smooth, out=smooth).sum(axis=0) / n_mesh
        return error / (density + DENSITY_FLOOR)


def _smooth_ece(even: Array, odd: Array, density: Array, smoother: Smoother) -> Array:
    """Smooth each half; at x and its mirror image together, |e + o| + |e − o| is read."""
    at_even = even[:, : len(smoother.even)] @ smoother.even
    at_odd = odd[:, : len(smoother.odd)] @ smoother.odd
    return _mean_error(at_even, at_odd, density, smoother.times)


def _mean_error(at_even: Array, at_odd: Array, density: Array, times: Array) -> Array:
    np.maximum(np.abs(at_even, out=at_even), np.abs(at_odd, out=at_odd), out=at_even)
    return at_even @ (times / times.sum()) / (density + DENSITY_FLOOR)


class _AtWide:
    """Few answers under few weightings, smoothed by each of the shapes of the wide kernels.

    So columns are evaluated at a bandwidth each, at once, where a group of columns for each
    bandwidth would hold one or two.
    """

    def __init__(self, weighted: Weighted) -> None:
        of = wide_kernels()
        columns = weighted.weights.T.astype(float)
        residuals = fold(place(weighted.confidence, weighted.residual, GRID))
        answers = fold_even(place(weighted.confidence, np.ones(len(weighted.confidence)), GRID))
        self.even, self.odd = (
            (columns @ (half.T @ kernels.reshape(HALF, -1))).reshape(-1, *kernels.shape[1:])
            for half, kernels in zip(residuals, (of.even, of.odd), strict=True)
        )
        self.density = columns @ (answers.T @ of.share)

    def smooth_ece(self, k: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
        """SmoothECE of some columns, each at its bandwidth k/1024."""
        of = wide_kernels()
        share = of.coefficients[k - FREQUENCIES_END]
        at_even, at_odd = (
            (share[:, None] @ half[columns])[:, 0] for half in (self.even, self.odd)
        )
        density = (share * self.density[columns]).sum(axis=1)
        return _mean_error(at_even, at_odd, density, of.times)


@lru_cache(maxsize=1)
def _ladder_shares() -> Array:
    return np.array([density_share(k) for k in LADDER])


def _in_chunks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _groups(k: NDArray[np.intp], which: NDArray[np.intp]) -> Iterator[tuple[int, NDArray]]:
    """Yield each bandwidth among k[which] with the `which` that have it."""
    of = k[which]
    order = np.argsort(of, kind="stable")
    starts = np.flatnonzero(np.diff(of[order], prepend=-1))
    for some in np.split(order, starts)[1:]:
        yield int(of[some[0]]), which[some]

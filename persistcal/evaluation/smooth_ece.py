"""SmoothECE with automatic bandwidth, of many weightings of the same answers at once.

The residuals (confidence minus correctness) are smoothed by a reflected Gaussian; SmoothECE is
the mean absolute smoothed residual, at the bandwidth that equals it. Grids, truncation and
search are those of the reference implementation, `relplot.smECE`; the search visits only
bandwidths k/1024, few of them per weighting.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.smoothing import N_BANDWIDTHS, Array
from persistcal.evaluation.weightings import Weighted

NARROWEST = 2  # narrower bandwidths, below 0.001, are never tried
N_SECANTS = 6  # steps of the search before it halves
FEW = 8  # answers for each distinct one, from which on equal ones are put together


def smooth_ece(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Calibration error that needs no bins.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        Stated probability that each answer is correct, in [0, 1].
    correct : array-like of shape (n_answers,)
        0 or 1.
    weights : array-like of shape (n_answers,) or (n_answers, n_columns), optional
        Multiplicities, at least 0: a weight of 2 is the answer given twice.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        In [0, 1]; 0 is perfect. NaN where the weights sum to 0.

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
    column: slice | NDArray[np.intp] = slice(None)
    if len(distinct) < len(columns):  # then whole columns are often equal, too
        distinct, column = np.unique(distinct, axis=1, return_inverse=True)
    values = _Search(Weighted(stated, residual, distinct)).values()[column]
    return values.reshape(weight.shape[1:])[()]


def _distinct(
    confidence: Array, residual: Array, weights: NDArray
) -> tuple[Array, Array, NDArray]:
    """Order answers by confidence; where few are distinct, add up the weights of equal ones."""
    order = np.lexsort((residual, confidence))
    confidence, residual, weights = confidence[order], residual[order], weights[order]
    differs = (np.diff(confidence) != 0) | (np.diff(residual) != 0)
    first = np.flatnonzero(np.concatenate([[True], differs])[: len(confidence)])
    if FEW * len(first) >= len(confidence):
        return confidence, residual, weights
    dtype = np.uint32 if weights.dtype == np.uint8 else float
    summed = [some.sum(axis=0, dtype=dtype) for some in np.split(weights, first[1:])]
    return confidence[first], residual[first], np.array(summed)


class _Search:
    """The bandwidth that relplot's bisection ends at, for each column.

    That is the narrowest k/1024 at which SmoothECE is not above the bandwidth.
    """

    def __init__(self, weighted: Weighted) -> None:
        self.weighted = weighted
        n = len(weighted.even)
        # the widest bandwidth known to be too narrow, and the narrowest known not to be
        self.narrow, self.wide = np.full(n, NARROWEST - 1), np.full(n, N_BANDWIDTHS)
        self.value, self.at = np.full(n, np.nan), np.zeros(n, int)  # SmoothECE, and at which k
        self.guess = np.full(n, weighted.prospect.usual)

    def values(self) -> Array:
        """Return SmoothECE at the bandwidth of each column."""
        if not self.weighted.is_small:  # else exact values are cheap
            self._approach()
        n_steps = 0
        while len(
            columns := np.flatnonzero((self.wide - self.narrow > 1) | (self.at != self.wide))
        ):
            n_steps += 1
            middle = (self.narrow + self.wide) // 2
            k = self.guess if n_steps <= N_SECANTS else middle
            k = np.clip(k, self.narrow + 1, np.maximum(self.narrow + 1, self.wide - 1))
            self._evaluate(k, columns, exact=True)
        return np.where(self.weighted.is_defined(), self.value, np.nan)

    def _approach(self) -> None:
        """Improve the guesses by the cosines that are there."""
        served, usual = self.weighted.served, self.weighted.prospect.usual
        self._evaluate(self.guess, np.arange(len(self.guess)), exact=usual in served)
        self._evaluate(self.guess, np.flatnonzero(self.guess >= served.stop), exact=False)

    def _evaluate(self, k: NDArray[np.intp], columns: NDArray[np.intp], *, exact: bool) -> None:
        k = k[columns]
        if exact:
            value = self.weighted.smooth_ece(k, columns)
            self._bracket(k, columns, value)
        else:
            value = self.weighted.approximate(k, columns)
        sigma, slope = k / N_BANDWIDTHS, self.weighted.prospect.slope
        crossing = np.ceil(N_BANDWIDTHS * (sigma + (value - sigma) / (1 - slope)))
        self.guess[columns] = crossing.clip(NARROWEST, N_BANDWIDTHS)

    def _bracket(self, k: NDArray[np.intp], columns: NDArray[np.intp], value: Array) -> None:
        # Smoothing wider lowers SmoothECE but for truncation and grids, which raise it by less
        # than a quarter per unit: so it equals the bandwidth between sigma and `bound`.
        sigma = k / N_BANDWIDTHS
        bound = value + (value - sigma) / 3
        wide = np.ceil(N_BANDWIDTHS * np.maximum(sigma, bound)).astype(int)
        narrow = np.floor(N_BANDWIDTHS * np.minimum(sigma, bound)).astype(int)
        self.wide[columns] = wide = np.minimum(self.wide[columns], wide)
        self.narrow[columns] = np.minimum(np.maximum(self.narrow[columns], narrow), wide - 1)
        found = wide == k
        last = columns[found]
        self.value[last], self.at[last] = value[found], k[found]

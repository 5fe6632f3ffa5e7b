"""Numbers that would be equal but for rounding are made equal."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 1e-12  # far above the error of a few operations on [0, 1], far below any opinion
HALF, SINGLE = 11, 24  # bits of the numbers of float16 and float32
EXACT = 10  # bits after the point: shares of up to 1024 samples, which no rounding has changed


def join_ties(values: Array) -> Array:
    """Return `values`, each that is within rounding of a smaller one replaced by it.

    Shares of a few samples are often tied, and so are what is made of them: given that exactly
    one of two answers is right, 0.8 against 0.6 says as much as 0.4 against 0.2. As computed
    they differ in the last bit, and AUC and Δ₀ would take the difference for an opinion.
    `values` are in [0, 1], or NaN.

    >>> bool(0.1 + 0.2 == 0.3)
    False
    >>> join_ties(np.array([0.1 + 0.2, 0.3, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    distinct, place = np.unique(values, return_inverse=True, equal_nan=False)
    return distinct[_level_starts(distinct, ROUNDING)][place].reshape(values.shape)


def undo_rounding(values: Array) -> Array:
    """Return confidences without the rounding of the numbers in which they were kept.

    Where all of `values`, in [0, 1] or NaN, are numbers of float32 or float16, those that are
    within a few of the last bits of float32 are one, and of what rounds to them hundredths or
    the simplest fraction take their place: 0.1 as float16 is 0.09998, but 1/10 here, so that
    0.8 against 0.6 is again 0.4 against 0.2. Other values go through `join_ties`.

    >>> undo_rounding(np.array([0.1, 0.7, 2 / 3], np.float16).astype(float)).tolist()
    [0.1, 0.7, 0.6666666666666666]
    """
    distinct, place = np.unique(values, return_inverse=True, equal_nan=False)
    known = distinct[~np.isnan(distinct)]
    bits = next((bits for bits in (HALF, SINGLE) if _fits(known, bits)), None)
    if bits is None or np.all(np.ldexp(known, EXACT) % 1 == 0):
        return join_ties(values)
    starts = np.arange(len(known))
    if bits == SINGLE:
        starts = _level_starts(known, np.maximum(16 * known, 1e-30) * 2.0**-SINGLE)
    first = np.unique(starts)
    last = np.append(first[1:], len(known)) - 1
    low, high = known[first] - _half_a_bit(known[first], bits), known[last]
    meant = _simplest(np.maximum(low, 0), np.minimum(high + _half_a_bit(high, bits), 1))
    meant = np.append(meant[np.searchsorted(first, starts)], distinct[len(known) :])
    return meant[place].reshape(values.shape)


def _level_starts(ordered: Array, tolerance: Array | float) -> NDArray[np.intp]:
    """Return for each of ascending numbers the place of the first one that it is tied with.

    Neighbours within the tolerance are tied, but no level is wider than that: it is cut.
    """
    number = np.arange(len(ordered))

    def starts_where(begins: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.maximum.accumulate(np.where(begins, number, 0))

    # written so that NaN, which comes last, begins a level of its own
    begins = ~(np.diff(ordered, prepend=-np.inf) <= tolerance)
    with np.errstate(invalid="ignore"):
        cut = np.floor((ordered - ordered[starts_where(begins)]) / tolerance)
    return starts_where(begins | ~(np.diff(cut, prepend=-1) == 0))


def _fits(values: Array, bits: int) -> bool:
    """Return whether numbers of so many bits hold all of `values`."""
    return bool(np.all(np.ldexp(np.frexp(values)[0], bits) % 1 == 0))


def _half_a_bit(values: Array, bits: int) -> Array:
    """Return how far a number may be from the one of so many bits that it rounds to."""
    return np.ldexp(0.5, np.frexp(values)[1] - bits)


@np.errstate(divide="ignore", invalid="ignore")  # of those that are found already
def _simplest(low: Array, high: Array) -> Array:
    """Return hundredths in each interval, or else the fraction of the smallest denominator."""
    hundredths = np.round(50 * (low + high)) / 100
    found = np.where((low <= hundredths) & (hundredths <= high), hundredths, np.nan)
    # by continued fractions: as long as low and high agree in the next term, it is taken
    numerator, denominator = np.ones_like(low), np.zeros_like(low)
    before = np.zeros_like(low), np.ones_like(low)
    while (missing := np.isnan(found)).any():
        term = np.ceil(low)
        last = term <= high
        term = np.where(last, term, np.floor(low))
        fraction = term * numerator + before[0], term * denominator + before[1]
        before, (numerator, denominator) = (numerator, denominator), fraction
        found = np.where(missing & last, numerator / denominator, found)
        low, high = 1 / (high - term), 1 / (low - term)
    return found

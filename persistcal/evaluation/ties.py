"""Numbers that would be equal but for rounding are made equal."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 1e-12  # far above the error of a few operations on [0, 1], far below any opinion
DIGITS = {"float16": 3, "float32": 6}  # significant ones that numbers of these types have

log = logging.getLogger(__name__)


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


def round_narrow(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return float32 rounded to 6 significant digits, and float16 to 3, as float64.

    0.1 as float16 is 0.09998, so 0.8 against 0.6 would no longer be as 0.4 against 0.2. The log
    names what is rounded; other types are returned as they are.

    >>> round_narrow(np.array([0.1, 0.7, 0], np.float16), "confidence").tolist()
    [0.1, 0.7, 0.0]
    """
    digits = DIGITS.get(str(values.dtype).lower())  # pandas writes Float32
    if digits is None:
        return values
    log.info("%s: %s, rounded to %d significant digits", name, values.dtype, digits)
    wide = np.asarray(values, float)
    exponent = np.floor(np.log10(wide, where=wide > 0, out=np.zeros_like(wide)))
    scale = 10.0 ** (digits - 1 - exponent)
    return np.round(wide * scale) / scale


def _level_starts(ordered: Array, tolerance: float) -> NDArray[np.intp]:
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

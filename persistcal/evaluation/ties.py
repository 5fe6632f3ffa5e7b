"""Numbers that would be equal but for rounding are made equal."""

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-12  # far above the error of a few operations on [0, 1], far below any opinion


def join_ties(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `values`, each that is within rounding of a smaller one replaced by it.

    Shares of a few samples are often tied, and so are what is made of them: given that exactly
    one of two answers is right, 0.8 against 0.6 says as much as 0.4 against 0.2. As computed
    they differ in the last bit, and AUC and Δ₀ would take the difference for an opinion.

    Parameters
    ----------
    values : ndarray of any shape
        In [0, 1], or NaN.

    Examples
    --------
    >>> bool(0.1 + 0.2 == 0.3)
    False
    >>> join_ties(np.array([0.1 + 0.2, 0.3, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    flat = values.ravel()
    order = np.argsort(flat)
    ordered = flat[order]
    # written so that NaN, which comes last, begins a level of its own
    begins = ~(np.diff(ordered, prepend=-np.inf) <= ROUNDING)
    joined = np.empty_like(flat)
    joined[order] = ordered[np.maximum.accumulate(np.where(begins, np.arange(len(flat)), 0))]
    return joined.reshape(values.shape)

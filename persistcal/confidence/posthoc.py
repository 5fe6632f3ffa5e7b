"""Post-hoc calibration: a map from confidence to probability, fitted on labelled answers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression


class Calibrator(NamedTuple):
    """A non-decreasing, piecewise linear map of [0, 1] to itself.

    Attributes
    ----------
    confidence, probability : ndarray of shape (n_knots,)
        The knots, in order; the first is at confidence 0 and the last at 1.
    """

    confidence: NDArray[np.float64]
    probability: NDArray[np.float64]


def fit_isotonic(confidence: ArrayLike, correct: ArrayLike) -> Calibrator:
    """Fit an isotonic calibrator.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        In [0, 1].
    correct : array-like of shape (n_answers,)
        0 or 1.

    Returns
    -------
    Calibrator
        A knot per block of the isotonic regression, at the block's mean
        confidence and share of correct answers, plus (0, 0) and (1, 1) where
        no knot is at 0 or 1.

    Raises
    ------
    ValueError
        When there are no answers to fit to.

    Examples
    --------
    Blocks {0.2, 0.4} (half are correct) and {0.8}:

    >>> fit_isotonic([0.2, 0.4, 0.8], [1, 0, 1])
    Calibrator(confidence=array([0. , 0.3, 0.8, 1. ]),
               probability=array([0. , 0.5, 1. , 1. ]))
    """
    stated, label = np.asarray(confidence, float), np.asarray(correct, float)
    if len(stated) == 0:
        raise ValueError("A calibrator needs answers to be fitted to, and there are none.")
    # ties are put together here: the estimator class of scikit-learn also puts together, and
    # interpolates between, what is equal but for a rounding
    level, tie = np.unique(stated, return_inverse=True)
    size, right = np.bincount(tie), np.bincount(tie, label)
    fitted = isotonic_regression(right / size, sample_weight=size)
    # values of one block can differ by a rounding, those of two blocks by more than 1e-12
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 1e-12)
    total = np.add.reduceat(size, starts)
    x = np.clip(np.add.reduceat(level * size, starts) / total, 0, 1)
    y = np.add.reduceat(right, starts) / total
    if x[0] > 0:
        x, y = np.insert(x, 0, 0.0), np.insert(y, 0, 0.0)
    if x[-1] < 1:
        x, y = np.append(x, 1.0), np.append(y, 1.0)
    return Calibrator(x, y)


def apply(calibrator: Calibrator, confidence: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities to which `calibrator` maps confidences.

    Examples
    --------
    >>> apply(Calibrator(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.8, 1.0])), [0.25, 1])
    array([0.4, 1. ])
    """
    return np.interp(np.asarray(confidence, float), *calibrator)


METHODS = {"isotonic": fit_isotonic}


def calibrate(
    method: str, stated: ArrayLike, correct: ArrayLike, confidence: ArrayLike
) -> NDArray[np.float64]:
    """Fit one of `METHODS` to labelled answers, and apply it to other confidences."""
    return apply(METHODS[method](stated, correct), confidence)

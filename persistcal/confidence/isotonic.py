"""Isotonic calibration: a non-decreasing map from confidence to probability."""

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
        Where several are at one confidence, the map jumps to the last of them.
    """

    confidence: NDArray[np.float64]
    probability: NDArray[np.float64]


def fit_isotonic(confidence: ArrayLike, correct: ArrayLike) -> Calibrator:
    """Fit an isotonic calibrator as in the paper's released code.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        In [0, 1].
    correct : array-like of shape (n_answers,)
        0 or 1.

    Returns
    -------
    Calibrator
        A knot per block of answers, at its mean confidence and share of correct
        answers, plus (0, 0) and (1, 1) where no knot is at 0 or 1.

    Notes
    -----
    Answers are blocks of their own, in ascending order of confidence and, where that
    is equal, in the order in which they are given: by checkpoint and question
    throughout this project. (The released code leaves ties to NumPy's default sort,
    whose order is not the same on all processors, and compares running means, whose
    rounding may pool two equal shares.) A block with a *strictly* larger share than the
    next is pooled with it, from left to right. So neighbouring blocks of equal share,
    and answers of equal confidence, remain knots of their own, and the map has plateaus,
    on which different confidences are tied. `fit_isotonic_merged` has none of these.

    Examples
    --------
    The first two answers are pooled, the last two are not:

    >>> fit_isotonic([0.2, 0.4, 0.7, 0.9], [1, 0, 1, 1])
    Calibrator(confidence=array([0. , 0.3, 0.7, 0.9, 1. ]),
               probability=array([0. , 0.5, 1. , 1. , 1. ]))
    """
    stated, right = _checked(confidence, correct)
    order = np.argsort(stated, kind="stable")
    stated, right = stated[order], right[order]
    # Of each block its first answer, its size and how many are correct: whole numbers, so
    # that shares are compared without rounding.
    starts: list[int] = []
    sizes: list[int] = []
    rights: list[int] = []
    for answer, label in enumerate(right.astype(int).tolist()):
        start, size, n_right = answer, 1, label
        while starts and rights[-1] * size > n_right * sizes[-1]:
            start, size, n_right = starts.pop(), size + sizes.pop(), n_right + rights.pop()
        starts.append(start)
        sizes.append(size)
        rights.append(n_right)
    counts = np.array(sizes)
    last = np.array([*starts[1:], len(stated)]) - 1
    mean = np.add.reduceat(stated, starts) / counts
    # a mean of equal confidences can be off by a rounding, and then out of order
    mean = mean.clip(stated[starts], stated[last])
    return _with_ends(mean, np.array(rights) / counts)


def fit_isotonic_merged(confidence: ArrayLike, correct: ArrayLike) -> Calibrator:
    """Fit an isotonic calibrator with one knot per fitted value.

    Other than for `fit_isotonic`, the order of answers does not matter. A knot is at the
    mean confidence and share of correct answers of all answers with one distinct value of
    the isotonic regression on distinct confidences, plus (0, 0) and (1, 1) as there.

    Examples
    --------
    Blocks {0.2, 0.4} (half are correct) and {0.7, 0.9}:

    >>> fit_isotonic_merged([0.2, 0.4, 0.7, 0.9], [1, 0, 1, 1])
    Calibrator(confidence=array([0. , 0.3, 0.8, 1. ]),
               probability=array([0. , 0.5, 1. , 1. ]))
    """
    stated, label = _checked(confidence, correct)
    # ties are put together here: the estimator class of scikit-learn also puts together, and
    # interpolates between, what is equal but for a rounding
    level, tie = np.unique(stated, return_inverse=True)
    size, right = np.bincount(tie), np.bincount(tie, label)
    fitted = isotonic_regression(right / size, sample_weight=size)
    # values of one block can differ by a rounding, those of two blocks by more than 1e-12
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 1e-12)
    total = np.add.reduceat(size, starts)
    mean = np.clip(np.add.reduceat(level * size, starts) / total, 0, 1)
    return _with_ends(mean, np.add.reduceat(right, starts) / total)


def apply(calibrator: Calibrator, confidence: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities to which `calibrator` maps confidences.

    >>> apply(Calibrator(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.8, 1.0])), [0.25, 1])
    array([0.4, 1. ])
    """
    return np.interp(np.asarray(confidence, float), *calibrator)


def _checked(
    confidence: ArrayLike, correct: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    stated, label = np.asarray(confidence, float), np.asarray(correct, float)
    if len(stated) == 0:
        raise ValueError("A calibrator needs answers to be fitted to, and there are none.")
    return stated, label


def _with_ends(x: NDArray[np.float64], y: NDArray[np.float64]) -> Calibrator:
    """Add knots at (0, 0) and (1, 1) where there is none at 0 or 1."""
    if x[0] > 0:
        x, y = np.insert(x, 0, 0.0), np.insert(y, 0, 0.0)
    if x[-1] < 1:
        x, y = np.append(x, 1.0), np.append(y, 1.0)
    return Calibrator(x, y)

"""Post-hoc calibration: a map from confidence to probability, fitted on labelled answers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from persistcal.evaluation.contrast import CLAMP


class Calibrator(NamedTuple):
    """A non-decreasing, piecewise linear map of [0, 1] to itself, by its knots in order.

    The first knot is at confidence 0 and the last at 1. If several knots have the same
    confidence, the map jumps to the last of them.
    """

    confidence: NDArray[np.float64]
    probability: NDArray[np.float64]

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities."""
        return np.interp(np.asarray(confidence, float), *self)


def fit_isotonic(confidence: ArrayLike, correct: ArrayLike) -> Calibrator:
    """Fit an isotonic calibrator as in the paper's released code.

    It has a knot per block of answers, at its mean confidence and share of correct ones (0 or
    1 each), plus (0, 0) and (1, 1) where no knot is at 0 or 1.

    Notes
    -----
    Each answer starts as a separate block. Blocks are in ascending order of confidence, and
    ties keep the input order: by checkpoint and question throughout this project. (The
    released code leaves ties to NumPy's default sort, which differs between processors, and
    compares running means, which can pool equal shares by rounding.) A block with a
    *strictly* larger share than the next is pooled with it, from left to right. Therefore
    neighbouring blocks of equal share and answers of equal confidence remain separate knots,
    and the map has plateaus on which different confidences are tied. `fit_isotonic_merged`
    avoids both.

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
    from sklearn.isotonic import isotonic_regression  # only calibration maps need sklearn

    fitted = isotonic_regression(right / size, sample_weight=size)
    # values of one block can differ by a rounding, those of two blocks by more than 1e-12
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 1e-12)
    total = np.add.reduceat(size, starts)
    mean = np.clip(np.add.reduceat(level * size, starts) / total, 0, 1)
    return _with_ends(mean, np.add.reduceat(right, starts) / total)


def _checked(
    confidence: ArrayLike, correct: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    stated, label = np.asarray(confidence, float), np.asarray(correct, float)
    if len(stated) == 0:
        raise ValueError(
            "A calibrator is fitted on labelled answers, but no answers were given."
        )
    return stated, label


def _with_ends(x: NDArray[np.float64], y: NDArray[np.float64]) -> Calibrator:
    """Add the knots (0, 0) and (1, 1) unless knots at 0 and 1 exist."""
    if x[0] > 0:
        x, y = np.insert(x, 0, 0.0), np.insert(y, 0, 0.0)
    if x[-1] < 1:
        x, y = np.append(x, 1.0), np.append(y, 1.0)
    return Calibrator(x, y)


class LogOdds(NamedTuple):
    """The map p -> sigmoid(a ln p - b ln(1 - p) + c), for p from 1e-6 to 1 - 1e-6.

    Non-decreasing if neither `a` nor `b` is negative.
    """

    a: float
    b: float
    c: float

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities."""
        yes, no = _log_sides(confidence).T
        return expit(self.a * yes + self.b * no + self.c)


def _log_sides(confidence: ArrayLike) -> NDArray[np.float64]:
    """Return ln p and -ln(1 - p) of each confidence, shape (n, 2)."""
    p = np.asarray(confidence, float).clip(CLAMP, 1 - CLAMP)
    return np.stack([np.log(p), -np.log1p(-p)], axis=1)


def _fit_logistic(
    features: NDArray[np.float64], correct: ArrayLike, *, intercept: bool
) -> tuple[NDArray[np.float64], float]:
    """Return weights and intercept of a logistic regression, without a penalty."""
    right = np.asarray(correct).astype(bool)
    if len(np.unique(right)) < 2:
        raise ValueError(
            f"This calibrator is fitted to right and wrong answers, but of {len(right)} "
            f"{int(right.sum())} are right; use posthoc isotonic, or more train questions."
        )
    # The scale of the features changes nothing but how fast the solver gets there.
    scale = features.std(axis=0) if intercept else np.abs(features).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    model.fit(features / scale, right)
    return model.coef_[0] / scale, float(np.ravel(model.intercept_)[0])


def fit_platt(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit sigmoid(a logit(p) + c) by maximum likelihood.

    Platt, "Probabilistic Outputs for Support Vector Machines", 1999, on log-odds and
    without his smoothing of the labels. If more confident answers are right less often, `a`
    is 0: calibration does not reverse an order.
    """
    logit = _log_sides(confidence).sum(axis=1, keepdims=True)
    [a], c = _fit_logistic(logit, correct, intercept=True)
    if a < 0:
        a, c = 0.0, _log_odds_of(correct)
    return LogOdds(a, a, c)


def fit_temperature(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit sigmoid(logit(p) / T) by maximum likelihood, T > 0 or infinite.

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, of the log-odds
    of a single answer.
    """
    logit = _log_sides(confidence).sum(axis=1, keepdims=True)
    [a], _ = _fit_logistic(logit, correct, intercept=False)
    return LogOdds(max(a, 0.0), max(a, 0.0), 0.0)


def fit_beta(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit beta calibration by maximum likelihood.

    Kull, Silva Filho and Flach, "Beyond Sigmoids", Electronic Journal of Statistics
    2017. As in the paper, a negative weight is set to 0, and the other one is fitted again.
    """
    sides = _log_sides(confidence)
    (a, b), c = _fit_logistic(sides, correct, intercept=True)
    if a < 0 or b < 0:
        kept = int(a < 0)  # the other one
        [weight], c = _fit_logistic(sides[:, [kept]], correct, intercept=True)
        if weight < 0:
            return LogOdds(0.0, 0.0, _log_odds_of(correct))
        a, b = (0.0, weight) if kept else (weight, 0.0)
    return LogOdds(a, b, c)


def _log_odds_of(correct: ArrayLike) -> float:
    """Return the log-odds of the share of right answers."""
    right = np.asarray(correct, float).mean()
    return float(np.log(right / (1 - right)))


METHODS: dict[str, Callable[[ArrayLike, ArrayLike], Calibrator | LogOdds]] = {
    "isotonic": fit_isotonic,
    "isotonic_merged": fit_isotonic_merged,
    "platt": fit_platt,
    "temperature": fit_temperature,
    "beta": fit_beta,
}


def calibrate(
    method: str, stated: ArrayLike, correct: ArrayLike, confidence: ArrayLike
) -> NDArray[np.float64]:
    """Fit a method of `METHODS` to labelled answers, and apply it to other confidences."""
    return METHODS[method](stated, correct)(confidence)

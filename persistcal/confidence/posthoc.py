"""Post-hoc calibration: a map from confidence to probability, fitted on labelled answers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression

from persistcal.evaluation.conditioning import CLAMP


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


class LogOdds(NamedTuple):
    """The map p -> sigmoid(a ln p - b ln(1 - p) + c), for p from 1e-6 to 1 - 1e-6.

    Non-decreasing if neither `a` nor `b` is negative.

    Attributes
    ----------
    a, b, c : float
    """

    a: float
    b: float
    c: float

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities.

        >>> LogOdds(1.0, 1.0, 0.0)([0.3, 1.0])
        array([0.3     , 0.999999])
        """
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
    model = LogisticRegression(C=np.inf, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    model.fit(features / scale, right)
    return model.coef_[0] / scale, float(np.ravel(model.intercept_)[0])


def fit_platt(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit sigmoid(a logit(p) + c) by maximum likelihood.

    Notes
    -----
    Platt, "Probabilistic Outputs for Support Vector Machines", 1999, on log-odds and
    without his smoothing of the labels. Where surer answers are right less often, `a` is
    0: calibration does not turn an order round.
    """
    logit = _log_sides(confidence).sum(axis=1, keepdims=True)
    [a], c = _fit_logistic(logit, correct, intercept=True)
    if a < 0:
        a, c = 0.0, _log_odds_of(correct)
    return LogOdds(a, a, c)


def fit_temperature(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit sigmoid(logit(p) / T) by maximum likelihood, T > 0 or infinite.

    Notes
    -----
    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, of the log-odds
    of a single answer.
    """
    logit = _log_sides(confidence).sum(axis=1, keepdims=True)
    [a], _ = _fit_logistic(logit, correct, intercept=False)
    return LogOdds(max(a, 0.0), max(a, 0.0), 0.0)


def fit_beta(confidence: ArrayLike, correct: ArrayLike) -> LogOdds:
    """Fit beta calibration by maximum likelihood.

    Notes
    -----
    Kull, Silva Filho and Flach, "Beyond Sigmoids", Electronic Journal of Statistics
    2017. As there, a side with a negative weight gets 0, and the other is fitted anew.
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
    "platt": fit_platt,
    "temperature": fit_temperature,
    "beta": fit_beta,
}


def calibrate(
    method: str, stated: ArrayLike, correct: ArrayLike, confidence: ArrayLike
) -> NDArray[np.float64]:
    """Fit one of `METHODS` to labelled answers, and apply it to other confidences."""
    fitted = METHODS[method](stated, correct)
    return apply(fitted, confidence) if isinstance(fitted, Calibrator) else fitted(confidence)

"""Post-hoc calibration: a map from confidence to probability, fitted on labelled answers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from persistcal.confidence.isotonic import (
    Calibrator,
    apply,
    fit_isotonic,
    fit_isotonic_merged,
)
from persistcal.evaluation.conditioning import CLAMP


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
    "isotonic_merged": fit_isotonic_merged,
    "platt": fit_platt,
    "temperature": fit_temperature,
    "beta": fit_beta,
}


def calibrate(
    method: str, stated: ArrayLike, correct: ArrayLike, confidence: ArrayLike
) -> NDArray[np.float64]:
    """Fit one of `METHODS` to labelled answers, and apply it to other confidences.

    Isotonic regression depends on the order of answers of equal confidence, see
    `persistcal.confidence.isotonic.fit_isotonic`.
    """
    fitted = METHODS[method](stated, correct)
    return apply(fitted, confidence) if isinstance(fitted, Calibrator) else fitted(confidence)

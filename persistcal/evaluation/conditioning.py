"""Confidences in the two answers to a question, given that exactly one is correct."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from persistcal.evaluation.predictions import join_ties

Conditioning = Literal["odds", "fitted", "cross_fitted"]
CONDITIONINGS: tuple[Conditioning, ...] = ("odds", "fitted")  # unless asked otherwise
N_FOLDS = 5
CLAMP = 1e-6
N_KNOTS = 30
APART = 1e-7  # smallest distance between knots; closer knots would fit noise


class Conditioned(NamedTuple):
    """Conditioned confidences in the two answers to each question: in (0, 1), of sum 1."""

    earlier: NDArray[np.float64]
    later: NDArray[np.float64]


def condition(
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    improvement: NDArray[np.bool_],
    conditioning: Conditioning,
    folds: NDArray[np.intp] | None = None,
) -> Conditioned:
    """Condition confidences on the contrast set, by odds or by a fitted score.

    Values that differ only by rounding are tied, see `persistcal.evaluation.predictions`.

    Parameters
    ----------
    earlier, later : ndarray of shape (n_questions,)
        Confidences in [0, 1] of the two checkpoints in their answers.
    improvement : bool ndarray of shape (n_questions,)
        Whether the later answer is the correct one; only the fits use it.
    folds : int ndarray of shape (n_questions,), optional
        Folds for "cross_fitted", see `question_folds`.
    """
    if conditioning == "odds":
        conditioned = condition_by_odds(earlier, later)
    elif conditioning == "fitted":
        conditioned = condition_by_fit(earlier, later, improvement)
    elif folds is None:
        raise ValueError("cross_fitted needs the folds of the questions.")
    else:
        conditioned = condition_by_cross_fit(earlier, later, improvement, folds)
    return Conditioned(*join_ties(np.stack(conditioned)))


def condition_by_odds(earlier: NDArray[np.float64], later: NDArray[np.float64]) -> Conditioned:
    r"""Condition as if the two answers were independent.

    .. math:: p_i' = \frac{p_i (1 - p_j)}{p_i (1 - p_j) + p_j (1 - p_i)},
              \qquad p_j' = 1 - p_i'

    Confidences are first clamped to [1e-6, 1 − 1e-6]. `p_j'` is computed as the
    mirrored fraction, not by subtraction, so that the pairs (p, q) and (q, p)
    give confidences that are tied to the last bit.

    Two equal confidences leave both answers equally likely; 0.8 against 0.5
    has odds of 4:

    >>> condition_by_odds(np.array([0.8, 0.8]), np.array([0.8, 0.5])).earlier
    array([0.5, 0.8])
    """
    first, second = (np.clip(p, CLAMP, 1 - CLAMP) for p in (earlier, later))
    only_first, only_second = first * (1 - second), second * (1 - first)
    either = only_first + only_second
    return Conditioned(only_first / either, only_second / either)


def condition_by_fit(
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    improvement: NDArray[np.bool_],
) -> Conditioned:
    r"""Condition by a Bradley–Terry model fitted to the same questions.

    .. math:: p_i' = \sigma(h(p_i) - h(p_j))

    `h` is non-decreasing, antisymmetric about 0.5 and piecewise linear, with
    knots at 0.5 and at the k/31 quantiles (k = 1…30) of max(p, 1 − p) over the
    2 N confidences; knots closer than 1e-7 are merged, and the last slope
    continues to 1. It minimises the negative log-likelihood, which is convex, over the
    increments between knots.

    Notes
    -----
    The fit uses the labels on which the result is evaluated, so the metrics are
    optimistic. If the labels are separable, the likelihood has no maximum and the
    optimiser stops at a large finite `h`.
    """
    return _fit(earlier, later, improvement, np.ones(len(earlier), bool))


def condition_by_cross_fit(
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    improvement: NDArray[np.bool_],
    folds: NDArray[np.intp],
) -> Conditioned:
    """Condition each fold of questions by the fit to the questions of the others.

    No label influences its own question; with `condition_by_fit` it does. A question gets
    equal confidences if no other fold has questions or the fit does not separate the answers.
    """
    conditioned = np.full((2, len(earlier)), 0.5)
    for fold in np.unique(folds):
        in_fold = folds == fold
        conditioned[:, in_fold] = np.stack(_fit(earlier, later, improvement, ~in_fold))[
            :, in_fold
        ]
    return Conditioned(*conditioned)


def question_folds(n_questions: int) -> NDArray[np.intp]:
    """Return the fold of each of the study's questions, the same for all pairs of checkpoints.

    Folds are drawn at random with a fixed seed. Their sizes differ by at most one question.
    """
    return np.random.default_rng(0).permutation(n_questions) % N_FOLDS


def _fit(
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    improvement: NDArray[np.bool_],
    known: NDArray[np.bool_],
) -> Conditioned:
    """Condition all questions by the fit to the questions with a `known` label."""
    first, second = (np.clip(p, CLAMP, 1 - CLAMP) for p in (earlier, later))
    knots = _knots(np.concatenate([first[known], second[known]]))
    difference = _features(first, knots) - _features(second, knots)
    signed = (np.where(improvement, -1.0, 1.0)[:, None] * difference)[known]

    def loss(increments: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signed @ increments
        return np.logaddexp(0, -margin).mean(), -(expit(-margin) @ signed) / len(margin)

    n_increments = difference.shape[1]
    if n_increments == 0 or not known.any():
        return Conditioned(np.full(len(first), 0.5), np.full(len(first), 0.5))
    increments = minimize(
        loss,
        np.full(n_increments, 1 / n_increments),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * n_increments,
        options={"ftol": 1e-13, "gtol": 1e-8, "maxiter": 5000, "maxfun": 20000},
    ).x
    log_odds = difference @ increments
    return Conditioned(expit(log_odds), expit(-log_odds))


def _knots(confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    away = np.maximum(confidence, 1 - confidence)
    levels = np.arange(1, N_KNOTS + 1) / (N_KNOTS + 1)
    knots = [0.5]
    for knot in np.quantile(away, levels) if len(away) else []:
        if knot - knots[-1] > APART:
            knots.append(float(knot))
    return np.array(knots)


def _features(
    confidence: NDArray[np.float64], knots: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the signed share of each increment of `h` between 0.5 and each confidence."""
    away = np.maximum(confidence, 1 - confidence)[:, None]
    part = (away - knots[:-1]) / np.diff(knots)
    part[:, :-1] = np.minimum(part[:, :-1], 1)  # the last slope is extrapolated
    return np.where(confidence >= 0.5, 1.0, -1.0)[:, None] * np.maximum(part, 0)

"""A linear probe: how likely an answer is right, read off a model's hidden states."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

# Weight of the ridge penalty against the answers' summed loss: hidden units are many
# and correlated.
PENALTY = 100.0


class Probe(NamedTuple):
    """A logistic regression on hidden states.

    Attributes
    ----------
    weights : ndarray of shape (n_units,)
        Of the hidden units as they are.
    bias : float
        Infinite where all answers that the probe was fitted to had one label.
    """

    weights: NDArray[np.float64]
    bias: float


def fit_probe(states: ArrayLike, correct: ArrayLike) -> Probe:
    """Fit a logistic regression with a ridge penalty on standardised hidden states.

    The sum of the answers' losses plus `PENALTY` / 2 times the sum of squared
    weights of the standardised units is minimised.

    Parameters
    ----------
    states : array-like of shape (n_answers, n_units)
    correct : array-like of shape (n_answers,)
        0 or 1.

    Notes
    -----
    After Azaria and Mitchell, "The Internal State of an LLM Knows When It's
    Lying", Findings of EMNLP 2023, with a linear classifier.

    Examples
    --------
    >>> probe = fit_probe([[0.0, 1.0], [1.0, 1.0], [0.0, 2.0], [1.0, 2.0]], [0, 1, 0, 1])
    >>> probe_confidence(probe, [[0.5, 7.0]]).round(3)
    array([0.5])
    """
    hidden, label = np.asarray(states, float), np.asarray(correct, int)
    if len(np.unique(label)) < 2:
        return Probe(np.zeros(hidden.shape[1]), np.inf if label.any() else -np.inf)
    scaler = StandardScaler().fit(hidden)
    regression = LogisticRegression(C=1 / PENALTY, max_iter=1000)
    regression.fit(scaler.transform(hidden), label)
    weights = regression.coef_[0] / scaler.scale_
    return Probe(weights, float(regression.intercept_[0] - weights @ scaler.mean_))


def probe_confidence(probe: Probe, states: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that each answer is correct: shape (n_answers,)."""
    return expit(np.asarray(states, float) @ probe.weights + probe.bias)

"""Selective prediction: how many errors remain if the least confident answers are withheld.

Answers with equal confidence are withheld in random order, and every metric is the expectation
over this order, so a metric does not depend on the order of the rows.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from persistcal.evaluation.predictions import AnswerArrays, Array


def _errors_in_top(confidence: ArrayLike, correct: ArrayLike) -> Array:
    """Return the expected number of errors among the k most confident answers, k = 0 … n."""
    stated, wrong = -np.asarray(confidence, float), 1 - np.asarray(correct, float)
    order = np.argsort(stated, kind="stable")
    ends = np.flatnonzero(np.diff(stated[order], append=np.inf)) + 1  # of each group of ties
    errors = np.cumsum(wrong[order])[ends - 1]
    positions = np.arange(len(wrong) + 1)
    return np.interp(positions, np.concatenate([[0], ends]), np.concatenate([[0], errors]))


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """Return the risk–coverage curve: coverage k / n, and the error rate of the k answers.

    Both arrays have a value for k = 1 … n, from the most confident answer to all answers.

    >>> coverage, risk = risk_coverage([0.9, 0.6, 0.6], [1, 1, 0])
    >>> [round(float(value), 3) for value in risk]  # 0; (0 + 1/2) / 2; 1 / 3
    [0.0, 0.25, 0.333]
    """
    errors = _errors_in_top(confidence, correct)[1:]
    answered = np.arange(1, len(errors) + 1)
    return answered / len(errors), errors / answered


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk–coverage curve: the mean risk over k = 1 … n.

    Lower is better; NaN without answers.

    Notes
    -----
    Equal to RiskCoverageCurveAUC of lm-polygraph 0.7.0. fd-shifts integrates from a risk of 0
    at coverage 0, so its value is lower by (error rate) / 2n. torch-uncertainty 0.13.0
    integrates from coverage 1/n: (n AURC − (r₁ + rₙ) / 2) / (n − 1), where rₖ is the risk of
    the k most confident answers. With ties, their values depend on the order of rows or
    interpolate.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers", ICLR 2019. https://arxiv.org/abs/1805.08206

    Examples
    --------
    The least confident answer is the error: (0 + 0 + 1/3) / 3

    >>> round(aurc([0.9, 0.6, 0.2], [1, 1, 0]), 4)
    0.1111
    """
    risk = risk_coverage(confidence, correct)[1]
    return float(risk.mean()) if len(risk) else np.nan


def augrc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the generalised risk–coverage curve.

    The generalised risk is the number of errors among the k most confident answers divided by
    all n answers. The curve is piecewise linear and begins at (0, 0). With accuracy
    a it equals (1 − AUROC) a (1 − a) + (1 − a)² / 2. Lower is better; NaN without answers.

    Notes
    -----
    Equal to fd-shifts, also with ties. torch-uncertainty 0.13.0 integrates from coverage 1/n:
    (n AUGRC − r₁ / 2n) / (n − 1), where r₁ is the risk of the most confident answer.

    References
    ----------
    .. [1] Traub, Bungert, Lüth, Baumgartner, Maier-Hein, Maier-Hein and Jaeger, "Overcoming
       Common Flaws in the Evaluation of Selective Classification Systems", NeurIPS 2024.
       https://arxiv.org/abs/2407.01032

    Examples
    --------
    Errors 0, 0, 0, 1 of 3 answers: ((0 + 0) + (0 + 0) + (0 + 1)) / 2 / 3 / 3

    >>> round(augrc([0.9, 0.6, 0.2], [1, 1, 0]), 4)
    0.0556
    """
    errors = _errors_in_top(confidence, correct)
    n = len(errors) - 1
    return float(((errors[1:] + errors[:-1]) / 2.0).sum() / n**2) if n else np.nan


def prediction_rejection_ratio(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the prediction rejection ratio (PRR): 1 for a perfect order, 0 for a random one.

    The gain in mean accuracy over all rejection rates, from the random order, divided by the
    gain of the order that withholds all errors first. NaN if all answers are equally correct.

    Notes
    -----
    Equal to PredictionRejectionArea of lm-polygraph 0.7.0 with `max_rejection=1`, but for its
    random order, a mean of 1,000 draws (below .003). Its benchmarks often reject at most half.

    References
    ----------
    .. [1] Malinin and Gales, "Uncertainty Estimation in Autoregressive Structured Prediction",
       ICLR 2021. https://arxiv.org/abs/2002.07650

    Examples
    --------
    >>> prediction_rejection_ratio([0.9, 0.6, 0.2], [1, 1, 0])
    1.0
    """
    labels = np.asarray(correct, float)
    if len(labels) == 0 or labels.min() == labels.max():
        return np.nan
    random_order, best_order = 1 - labels.mean(), aurc(labels, labels)
    return float((random_order - aurc(confidence, labels)) / (random_order - best_order))


SELECTIVE_METRICS = {"aurc": aurc, "augrc": augrc, "prr": prediction_rejection_ratio}


def selective_rows(answers: AnswerArrays) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table SELECTIVE: each checkpoint, estimator, seed and metric."""
    for series, confidence in answers.confidence.items():
        for k, checkpoint in enumerate(answers.checkpoints):
            [stated], labels, _ = answers.rate(k, [confidence])
            for metric, function in SELECTIVE_METRICS.items():
                value = function(stated, labels)
                place = {"checkpoint": checkpoint, **series._asdict()}
                yield {**place, "metric": metric, "value": value}

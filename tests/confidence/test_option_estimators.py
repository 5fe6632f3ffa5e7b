"""Estimators for multiple choice, against values by hand."""

import numpy as np
import pandas as pd
import pytest

from persistcal.confidence.estimators.probabilities import (
    option_entropy,
    option_margin,
    option_probability,
)
from persistcal.confidence.evidence import Evidence, rate

# Probabilities of the options of each question, best first, at two checkpoints
SHARES = {
    ("a", "q1"): [0.5, 0.25, 0.25],
    ("a", "q2"): [0.9, 0.1],
    ("b", "q1"): [0.4, 0.4, 0.2],
    ("b", "q2"): [1.0, 0.0],
}
# 1 - H / ln(n options). q1 at a: H = .5 ln 2 + .5 ln 4 = 1.5 ln 2; at b: .8 ln 2.5 + .2 ln 5
ENTROPIES = [
    1 - 1.5 * np.log(2) / np.log(3),
    1 + (0.9 * np.log(0.9) + 0.1 * np.log(0.1)) / np.log(2),
    1 - (0.8 * np.log(2.5) + 0.2 * np.log(5)) / np.log(3),
    1.0,
]


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (option_probability, [0.5, 0.9, 0.4, 1.0]),
        (option_margin, [0.25, 0.8, 0.0, 1.0]),  # .5 - .25, .9 - .1, .4 - .4, 1 - 0
        (option_entropy, ENTROPIES),
    ],
)
def test_option_estimators_equal_values_by_hand_in_any_order_of_answers(estimator, expected):
    rows = [(*key, i, p) for key, shares in SHARES.items() for i, p in enumerate(shares)]
    columns = ["checkpoint", "question_id", "cluster", "probability"]
    clusters = pd.DataFrame(rows, columns=columns)
    answers = clusters[clusters["cluster"] == 0].drop(columns="cluster")[::-1]
    empty = pd.DataFrame()
    evidence = Evidence((), ("a", "b"), labelled=empty, clusters=clusters, beams=empty)
    assert rate(estimator, answers, evidence, "mine")[::-1].tolist() == pytest.approx(expected)

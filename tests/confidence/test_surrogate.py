"""Confidence that another checkpoint gives to an answer, by hand."""

import pandas as pd
import pytest

from persistcal.answers.equivalence import Pair, identical
from persistcal.confidence.estimators.self_consistency_surrogate import surrogate_confidences
from persistcal.store import artifacts

CANDIDATES = pd.DataFrame(
    [
        ("q1", 0, "Mount Everest", 0.5, ["Mount Everest", "Everest"]),
        ("q1", 1, "K2", 0.3, ["K2"]),
        ("q1", 2, "Chomolungma", 0.15, ["Chomolungma"]),
        ("q2", 0, "Oslo", 0.9, ["Oslo"]),
    ],
    columns=artifacts.CLUSTERS.schema.names,
)


def test_surrogate_adds_up_the_clusters_that_mean_the_same():
    asked = []

    def equivalent(pairs):
        asked.extend(pairs)
        return [pair.other == "Chomolungma" or identical([pair])[0] for pair in pairs]

    predictions = pd.DataFrame(
        {
            "question_id": ["q2", "q1"],
            "question": ["Where?", "Which?"],
            "answer": ["x", "everest"],
        },
        index=[7, 3],
    )
    confidence = surrogate_confidences(predictions, CANDIDATES, equivalent)
    # Mount Everest 0.5, which holds it, and Chomolungma 0.15
    assert confidence.to_dict() == {7: 0.0, 3: pytest.approx(0.65)}
    assert asked == [
        Pair("Where?", "x", "Oslo"),
        Pair("Which?", "everest", "K2"),
        Pair("Which?", "everest", "Chomolungma"),
    ]


def test_surrogate_compares_with_every_member_of_a_cluster():
    def equivalent(pairs):
        return [{pair.one, pair.other} == {"Sagarmatha", "Everest"} for pair in pairs]

    predictions = pd.DataFrame(
        {"question_id": ["q1", "q2"], "question": "Which?", "answer": ["Sagarmatha"] * 2}
    )
    # Not with "Mount Everest", which stands for its cluster of probability 0.5
    assert surrogate_confidences(predictions, CANDIDATES, equivalent).tolist() == [0.5, 0.0]


def test_surrogate_of_a_checkpoint_without_answers_is_zero():
    predictions = pd.DataFrame({"question_id": ["q1"], "question": ["?"], "answer": ["K2"]})
    assert surrogate_confidences(predictions, CANDIDATES[:0], identical).tolist() == [0.0]

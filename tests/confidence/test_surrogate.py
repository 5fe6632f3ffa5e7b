"""Confidence that another checkpoint gives to an answer, by hand."""

import pandas as pd
import pytest

from persistcal.answers.equivalence import Pair
from persistcal.confidence.estimators.meaning import surrogate_confidences
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


def test_surrogate_adds_up_the_clusters_of_which_a_member_means_the_same():
    asked = []

    def equivalent(pairs):
        asked.extend(pairs)
        same = {("everest", "Chomolungma"), ("Sagarmatha", "Everest")}
        return [(pair.one, pair.other) in same for pair in pairs]

    predictions = pd.DataFrame(
        [("q2", "Where?", "x"), ("q1", "Which?", "everest"), ("q1", "Which?", "Sagarmatha")],
        columns=["question_id", "question", "answer"],
        index=[7, 3, 5],
    )
    confidence = surrogate_confidences(predictions, CANDIDATES, equivalent)
    # Mount Everest 0.5, which holds it, and Chomolungma 0.15. Sagarmatha is not said to mean
    # "Mount Everest", which stands for its cluster of probability 0.5, but another member.
    assert confidence.to_dict() == {7: 0.0, 3: pytest.approx(0.65), 5: 0.5}
    others = ["Mount Everest", "Everest", "K2", "Chomolungma"]
    assert asked == [
        Pair("Where?", "x", "Oslo"),
        *(Pair("Which?", "everest", other) for other in others[2:]),
        *(Pair("Which?", "Sagarmatha", other) for other in others),
    ]
    nothing = surrogate_confidences(predictions, CANDIDATES[:0], equivalent)
    assert nothing.tolist() == [0.0] * 3  # of a checkpoint without answers

"""The confidence of another checkpoint in an answer, calculated by hand."""

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


def test_a_surrogates_confidence_is_the_sum_of_its_clusters_with_an_equivalent_member():
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
    # "everest" is in the cluster of Mount Everest and equivalent to Chomolungma: 0.5 + 0.15.
    # "Sagarmatha" is equivalent to the second member of the first cluster only: 0.5.
    assert confidence.to_dict() == {7: 0.0, 3: pytest.approx(0.65), 5: 0.5}
    members = ["Mount Everest", "Everest", "K2", "Chomolungma"]
    assert asked == [
        Pair("Where?", "x", "Oslo"),
        *(Pair("Which?", "everest", member) for member in members[2:]),
        *(Pair("Which?", "Sagarmatha", member) for member in members),
    ]
    assert surrogate_confidences(predictions, CANDIDATES[:0], equivalent).tolist() == [0.0] * 3

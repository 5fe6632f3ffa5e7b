"""On checkpoints k (the last earlier one), m and n (evaluated), and three test questions."""

import pandas as pd
import pytest
from estimate_self_consistency_copy import estimate_self_consistency_copy
from estimate_self_consistency_surrogate import estimate_self_consistency_surrogate

from persistcal import artifacts
from persistcal.answers.equivalence import Pair, identical
from persistcal.confidence.surrogate import surrogate_confidences

QUESTIONS = {"q1": "test", "q2": "test", "q3": "test", "q4": "train"}


def clusters(*rows):
    """Rows (question, cluster, answer, probability, members)."""
    return pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)


K = clusters(
    ("q1", 0, "Mount Everest", 0.5, ["Mount Everest", "Everest"]),
    ("q1", 1, "K2", 0.3, ["K2"]),
    ("q1", 2, "Chomolungma", 0.15, ["Chomolungma"]),
    ("q2", 0, "Oslo", 0.9, ["Oslo"]),
    ("q4", 0, "Rome", 0.8, ["Rome"]),
)
M = clusters(
    ("q1", 0, "everest.", 0.7, ["everest."]),
    ("q1", 1, "K2", 0.3, ["K2"]),
    ("q2", 0, "Bergen", 0.6, ["Bergen"]),
    ("q3", 0, "Lima", 0.4, ["Lima"]),
    ("q4", 0, "Rome", 1.0, ["Rome"]),
)
N = clusters(("q1", 0, "k2", 0.6, ["k2"]), ("q2", 0, "OSLO", 0.2, ["OSLO"]))


@pytest.fixture
def paths(tmp_path):
    questions = pd.DataFrame(
        {"question_id": list(QUESTIONS), "split": list(QUESTIONS.values())}
    )
    questions = questions.assign(
        index=range(4),
        question=[f"Text of {name}?" for name in QUESTIONS],
        references=[["x"]] * 4,
        any_of=True,
        category="c",
        excluded=False,
    )
    artifacts.write(questions, tmp_path / "questions.parquet", artifacts.QUESTIONS)
    for name, frame in {"k": K, "m": M, "n": N}.items():
        artifacts.write(frame, tmp_path / f"{name}.parquet", artifacts.CLUSTERS)
    return tmp_path


def confidences(path):
    frame = artifacts.read(path, artifacts.CONFIDENCES)
    assert set(frame["train_dataset"]) == {"quiz"}
    assert set(frame["seed"]) == {0}
    return frame.set_index(["checkpoint", "question_id"])["confidence"].to_dict()


GROUPS = {"checkpoints": ["k", "m", "n"], "earlier": ["j", "k"], "evaluation": ["m", "n"]}


def test_surrogate(paths):
    out = paths / "quiz" / "self_consistency_surrogate.parquet"
    estimate_self_consistency_surrogate(
        paths / "questions.parquet",
        [paths / f"{name}.parquet" for name in "kmn"],
        out,
        equivalence={"backend": "lexical"},
        **GROUPS,
    )
    assert confidences(out) == {
        ("m", "q1"): 0.5,  # a member of Mount Everest, though not its representative
        ("m", "q2"): 0.0,  # k did not say Bergen
        ("m", "q3"): 0.0,  # k said nothing
        ("n", "q1"): 0.3,
        ("n", "q2"): 0.9,
    }


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
    confidence = surrogate_confidences(predictions, K, equivalent)
    # Mount Everest 0.5, which holds it, and Chomolungma 0.15
    assert confidence.to_dict() == {7: 0.0, 3: pytest.approx(0.65)}
    assert asked == [
        Pair("Where?", "x", "Oslo"),
        Pair("Which?", "everest", "K2"),
        Pair("Which?", "everest", "Chomolungma"),
    ]


def test_surrogate_of_a_checkpoint_without_answers_is_zero():
    predictions = pd.DataFrame({"question_id": ["q1"], "question": ["?"], "answer": ["K2"]})
    assert surrogate_confidences(predictions, K[:0], identical).tolist() == [0.0]


def test_copy(paths):
    out = paths / "quiz" / "self_consistency_copy.parquet"
    estimate_self_consistency_copy([paths / f"{name}.parquet" for name in "kmn"], out, **GROUPS)
    copied = confidences(out)
    assert copied == {
        ("m", "q1"): 0.5,
        ("m", "q2"): 0.9,
        ("m", "q3"): 0.0,  # k has no answer
        ("m", "q4"): 0.8,
        ("n", "q1"): 0.5,
        ("n", "q2"): 0.9,
    }

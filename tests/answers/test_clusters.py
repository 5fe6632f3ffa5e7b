"""Clusters of equivalent answers, their probabilities and their labels."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from persistcal.answers import clusters as clustering
from persistcal.answers.clusters import (
    QuestionBeams,
    beam_weights,
    identical,
    label_predictions,
    take_predictions,
)


def cluster_answers(texts, logprobs, equivalent=identical, **options):
    """Return the clusters of one question."""
    [clusters] = clustering.cluster_answers(
        [QuestionBeams("?", texts, logprobs)], equivalent, **options
    )
    return clusters


def equivalence_of(links):
    """Return an equivalence of exactly the pairs in `links`."""
    return lambda pairs: [frozenset({pair.one, pair.other}) in links for pair in pairs]


@pytest.mark.parametrize(
    ("texts", "beams", "weighting", "expected"),
    [
        # 0.2 + 0.5 for Paris, represented by its better beam " PARIS. "
        (
            ["Paris", " PARIS. ", "Lyon"],
            [0.2, 0.5, 0.3],
            "probability",
            [("PARIS.", 0.7, ["PARIS.", "Paris"]), ("Lyon", 0.3, ["Lyon"])],
        ),
        # The empty beam stays in the denominator: 0.1 / (0.3 + 0.1)
        (["", "Rome"], [0.3, 0.1], "softmax", [("Rome", 0.25, ["Rome"])]),
        (["", "  ", "."], [0.3, 0.2, 0.1], "softmax", []),
        # Ties: the better beam or the earlier sample is first
        (["x", "y"], [0.5, 0.5], "softmax", [("x", 0.5, ["x"]), ("y", 0.5, ["y"])]),
        (["b", "a", "a", "b"], [1] * 4, "equal", [("b", 0.5, ["b"]), ("a", 0.5, ["a"])]),
        # A decimal point matters
        (
            ["3.5", "35", "3.5."],
            [1] * 3,
            "equal",
            [("3.5", 2 / 3, ["3.5", "3.5."]), ("35", 1 / 3, ["35"])],
        ),
    ],
)
def test_identical_answers_share_a_cluster(texts, beams, weighting, expected):
    clusters = cluster_answers(texts, np.log(beams), weighting=weighting)
    assert clusters == [(answer, pytest.approx(p), members) for answer, p, members in expected]


def test_answers_that_are_equivalent_to_a_third_answer_share_a_cluster():
    links = {frozenset({"a", "b"}), frozenset({"b", "c"})}
    clusters = cluster_answers(
        ["a", "c", "b", "d"],
        np.log([0.1, 0.2, 0.3, 0.4]),
        equivalence_of(links),
        weighting="probability",
    )
    assert [sorted(c.members) for c in clusters] == [["a", "b", "c"], ["d"]]
    assert clusters[0].answer == "b"
    assert clusters[0].probability == pytest.approx(0.6)


def test_samples_count_equally_and_the_most_frequent_text_is_the_answer():
    texts = ["paris", "Lyon", "Paris", "", "Paris.", "Lyon", "Paris", "Nice"]
    samples = cluster_answers(texts, [math.nan] * 8, weighting="equal")
    assert [c.answer for c in samples] == ["Paris", "Lyon", "Nice"]  # 2 of 4 spell "Paris"
    assert [c.probability for c in samples] == pytest.approx([4 / 8, 2 / 8, 1 / 8])
    assert samples[0].members == ["Paris", "paris", "Paris."]
    # Log-probabilities do not matter.
    logprobs = np.log([0.01, 0.9, 0.01, 0.04, 0.01, 0.01, 0.01, 0.01])
    assert cluster_answers(texts, logprobs, weighting="equal") == samples


@pytest.mark.parametrize("n", [2, 4, 6])
def test_spelling_does_not_change_the_order_of_equally_frequent_answers(n):
    # Half of the samples are a, the first one too, and half are b, in all spellings.
    drawn = ["a", "b"] * (n // 2)
    for marks in itertools.product(["", "."], repeat=n):
        texts = [text + mark for text, mark in zip(drawn, marks, strict=True)]
        clusters = cluster_answers(texts, [math.nan] * n, weighting="equal")
        assert [c.answer.rstrip(".") for c in clusters] == ["a", "b"]
        assert [c.probability for c in clusters] == [0.5, 0.5]


def test_unknown_weighting_names_the_choices():
    with pytest.raises(ValueError, match="'softmax', 'probability' or 'equal'"):
        beam_weights([0.0], weighting="raw")


QUESTIONS = pd.DataFrame(
    {
        "question_id": ["q1", "q2", "q3", "q4", "q5"],
        "question": ["One?", "Two?", "Three?", "Four?", "Five?"],
        "split": ["test", "test", "train", "test", "test"],
        "excluded": [False, False, False, True, False],
    }
)
CLUSTERS = pd.DataFrame(
    {
        "question_id": ["q1", "q1", "q2", "q3", "q4"],
        "cluster": [0, 1, 0, 0, 0],
        "answer": ["Paris", "Lyon", "Oslo", "Rome", "Bern"],
        "probability": [0.6, 0.4, 0.5, 0.9, 0.3],
    }
)
LABELS = CLUSTERS[["question_id", "cluster"]].assign(
    label=["correct", "incorrect", "not_attempted", "correct", "correct"]
)


def test_predictions_are_the_first_clusters_of_questions_that_are_not_excluded():
    # q3 is a train question, q4 is excluded, q5 has no answer
    assert take_predictions(QUESTIONS, CLUSTERS).to_dict("list") == {
        "question_id": ["q1", "q2"],
        "question": ["One?", "Two?"],
        "answer": ["Paris", "Oslo"],
        "probability": [0.6, 0.5],
    }
    assert take_predictions(QUESTIONS, CLUSTERS, split="train")["answer"].tolist() == ["Rome"]


def test_an_answer_that_was_not_attempted_is_not_correct():
    labelled = label_predictions(take_predictions(QUESTIONS, CLUSTERS), LABELS)
    assert labelled["correct"].tolist() == [True, False]
    assert "label" not in labelled

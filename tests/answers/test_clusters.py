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
    """The clusters of one question; `equivalent` compares (question, one, other)."""
    [clusters] = clustering.cluster_answers(
        [QuestionBeams("?", texts, logprobs)], equivalent, **options
    )
    return clusters


def linked_by(links):
    """An equivalence that holds between the answers of each of `links`."""
    return lambda pairs: [frozenset({pair.one, pair.other}) in links for pair in pairs]


def test_identical_answers_share_a_cluster_without_asking():
    clusters = cluster_answers(
        ["Paris", " PARIS. ", "Lyon"], np.log([0.2, 0.5, 0.3]), weighting="probability"
    )
    # 0.2 + 0.5 for Paris, represented by its better beam " PARIS. "
    assert [c.answer for c in clusters] == ["PARIS.", "Lyon"]
    assert clusters[0].probability == pytest.approx(0.7)
    assert clusters[0].members == ["PARIS.", "Paris"]


def test_empty_beams_keep_their_mass_in_the_denominator():
    clusters = cluster_answers(["", "Rome"], np.log([0.3, 0.1]))
    # softmax over both beams: 0.1 / (0.3 + 0.1)
    assert [(c.answer, round(c.probability, 6)) for c in clusters] == [("Rome", 0.25)]


def test_no_answer_at_all_gives_no_cluster():
    assert cluster_answers(["", "  ", "."], [-1.0, -2.0, -3.0]) == []


def test_equivalence_is_transitive_through_a_third_answer():
    same = {frozenset({"a", "b"}), frozenset({"b", "c"})}
    clusters = cluster_answers(
        ["a", "c", "b", "d"],
        np.log([0.1, 0.2, 0.3, 0.4]),
        linked_by(same),
        weighting="probability",
    )
    assert [sorted(c.members) for c in clusters] == [["a", "b", "c"], ["d"]]
    assert clusters[0].answer == "b"
    assert clusters[0].probability == pytest.approx(0.6)


def test_ties_go_to_the_better_beam():
    clusters = cluster_answers(["x", "y"], np.log([0.5, 0.5]))
    assert [c.answer for c in clusters] == ["x", "y"]


def test_samples_count_equally_and_the_most_frequent_text_stands_for_them():
    """Log-probabilities, known or not, change nothing."""
    texts = ["paris", "Lyon", "Paris", "", "Paris.", "Lyon", "Paris", "Nice"]
    drawn = cluster_answers(texts, [math.nan] * 8, weighting="equal")
    assert [c.answer for c in drawn] == ["Paris", "Lyon", "Nice"]  # of Paris 2 of 4
    assert [c.probability for c in drawn] == pytest.approx([4 / 8, 2 / 8, 1 / 8])
    assert drawn[0].members == ["Paris", "paris", "Paris."]
    weighed = np.log([0.01, 0.9, 0.01, 0.04, 0.01, 0.01, 0.01, 0.01])
    assert cluster_answers(texts, weighed, weighting="equal") == drawn
    two = cluster_answers(["b", "a", "a", "b"], [math.nan] * 4, weighting="equal")
    assert [c.answer for c in two] == ["b", "a"]  # of equals the first one drawn


@pytest.mark.parametrize("n", [2, 4, 6])
def test_spelling_does_not_decide_between_equally_frequent_answers(n):
    # half of the samples are a, the first one too, half b; spellings differ in any way
    drawn = ["a", "b"] * (n // 2)
    for marks in itertools.product(["", "."], repeat=n):
        texts = [text + mark for text, mark in zip(drawn, marks, strict=True)]
        clusters = cluster_answers(texts, [math.nan] * n, weighting="equal")
        assert [c.answer.rstrip(".") for c in clusters] == ["a", "b"]
        assert [c.probability for c in clusters] == [0.5, 0.5]


def test_numbers_with_a_decimal_point_are_answers_of_their_own():
    clusters = cluster_answers(["3.5", "35", "3.5."], [math.nan] * 3, weighting="equal")
    assert [(c.answer, len(c.members)) for c in clusters] == [("3.5", 2), ("35", 1)]


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


def test_predictions_are_first_clusters_of_questions_that_count():
    # q3 is a train question, q4 is excluded, q5 has no answer
    assert take_predictions(QUESTIONS, CLUSTERS).to_dict("list") == {
        "question_id": ["q1", "q2"],
        "question": ["One?", "Two?"],
        "answer": ["Paris", "Oslo"],
        "probability": [0.6, 0.5],
    }
    assert take_predictions(QUESTIONS, CLUSTERS, split="train")["answer"].tolist() == ["Rome"]


def test_what_was_not_attempted_is_not_correct():
    labelled = label_predictions(take_predictions(QUESTIONS, CLUSTERS), LABELS)
    assert labelled["correct"].tolist() == [True, False]
    assert "label" not in labelled

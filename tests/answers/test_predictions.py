import pandas as pd
import pytest

from persistcal.answers.predictions import gather_scores, join_predictions, top_answers

QUESTIONS = pd.DataFrame(
    {
        "question_id": ["q1", "q2", "q3", "q4", "q5"],
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


def test_predictions_are_top_clusters_of_test_questions_that_count():
    answers = top_answers(QUESTIONS, CLUSTERS, LABELS)
    # q3 is a train question, q4 is excluded, q5 has no answer
    assert answers.to_dict("list") == {
        "question_id": ["q1", "q2"],
        "answer": ["Paris", "Oslo"],
        "probability": [0.6, 0.5],
        "correct": [True, False],
    }
    assert top_answers(QUESTIONS, CLUSTERS, LABELS, split="train")["answer"].tolist() == [
        "Rome"
    ]


def scored(estimator, checkpoint, scored_at, answers_of):
    return {
        "estimator": estimator,
        "checkpoint": checkpoint,
        "scored_at": scored_at,
        "answers_of": answers_of,
        "recipe": "non_oracle",
        "trained_on": "a",
        "train_dataset": "quiz",
        "seed": 17,
    }


def test_scores_are_gathered_where_they_were_made():
    key = {"recipe": "non_oracle", "trained_on": "a", "train_dataset": "quiz", "seed": 17}
    at_b = pd.DataFrame({"question_id": ["q1"], "confidence": [0.1]}).assign(
        answers_of="b", **key
    )
    at_a = pd.concat(
        pd.DataFrame({"question_id": ["q1"], "confidence": [value]}).assign(
            answers_of=of, **key
        )
        for of, value in [("a", 0.2), ("b", 0.3)]
    )
    rows = [
        scored("own", "b", "b", "b"),
        scored("copy", "b", "a", "a"),
        scored("sur", "b", "a", "b"),
    ]
    found = gather_scores({"a": at_a, "b": at_b}, rows)
    assert dict(zip(found["estimator"], found["confidence"], strict=True)) == {
        "own": 0.1,
        "copy": 0.2,
        "sur": 0.3,
    }
    with pytest.raises(KeyError, match="No scores of adapter"):
        gather_scores({"a": at_a}, [scored("own", "c", "c", "c")])


def test_a_copy_without_an_answer_has_no_confidence_and_others_must_have_one():
    answers = pd.DataFrame(
        {"checkpoint": ["b", "b"], "question_id": ["q1", "q2"], "correct": [True, False]}
    )
    confidences = pd.DataFrame({"question_id": ["q1", "q9"], "confidence": [0.7, 0.8]}).assign(
        estimator="copy", checkpoint="b", train_dataset="quiz", seed=17
    )
    joined = join_predictions(answers, confidences, copies=["copy"])
    assert joined["confidence"].tolist() == [0.7, 0.0]
    with pytest.raises(ValueError, match="'copy' has no confidence for question 'q2'"):
        join_predictions(answers, confidences, copies=[])

import pandas as pd

from persistcal.answers.predictions import label_predictions, take_predictions

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

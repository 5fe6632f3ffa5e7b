"""Scores of adapters become confidences of each checkpoint's answers."""

import pandas as pd
import pytest
from gather_confidences import gather_confidences
from join_labels import join_labels

from persistcal.answers.clusters import join_predictions
from persistcal.confidence.estimate import calibrate_runs, gather_scores

KEY = {"recipe": "non_oracle", "trained_on": "a", "train_dataset": "quiz", "seed": 17}
ANSWERS = pd.DataFrame(
    {"checkpoint": ["b", "b"], "question_id": ["q1", "q2"], "correct": [True, False]}
)


def scores(*rows):
    """Rows (answers_of, confidence) on one question."""
    table = pd.DataFrame(rows, columns=["answers_of", "confidence"])
    return table.assign(question_id="q1", **KEY)


def test_own_copied_and_surrogate_scores_come_from_the_checkpoint_that_made_them():
    tables = pd.concat(
        [
            scores(("b", 0.1)).assign(checkpoint="b", answers="own"),
            scores(("a", 0.2)).assign(checkpoint="a", answers="own"),
            scores(("b", 0.3), ("c", 0.4)).assign(checkpoint="a", answers="evaluation"),
        ]
    )

    def gathered(scored_at, answers, answers_of):
        use = {"scored_at": scored_at, "answers": answers, "answers_of": answers_of}
        rows = gather_scores(tables, [{"checkpoint": "b", **use}])
        assert rows["checkpoint"].tolist() == ["b"]
        return rows["confidence"].item()

    assert gathered("b", "own", "b") == 0.1
    assert gathered("a", "own", "a") == 0.2  # a copy
    assert gathered("a", "evaluation", "b") == 0.3  # a surrogate


def rated(*confidences, **columns):
    frame = pd.DataFrame({"confidence": confidences})
    return frame.assign(**{"train_dataset": "quiz", "seed": 17, **columns})


def test_each_seed_is_calibrated_on_its_own_answers():
    labelled = pd.concat(
        [rated(0.5, correct=True), rated(0.5, correct=False, seed=18, train_dataset="quiz")]
    )
    confidences = pd.concat([rated(0.25), rated(0.25, seed=18)])
    # Seed 17: knots (0, 0), (0.5, 1), (1, 1). Seed 18: (0, 0), (0.5, 0), (1, 1).
    calibrated = calibrate_runs(confidences, labelled, "isotonic", "mine")
    assert calibrated["confidence"].tolist() == [0.5, 0.0]


def test_only_a_copied_confidence_can_be_missing():
    confidences = pd.DataFrame({"question_id": ["q1", "q9"], "confidence": [0.7, 0.8]}).assign(
        checkpoint="b", train_dataset="quiz", seed=17
    )
    joined = join_predictions(ANSWERS, confidences, "copy", copies=True)
    assert joined["confidence"].tolist() == [0.7, 0.0]
    assert joined["correct"].tolist() == [True, False]
    with pytest.raises(ValueError, match="'own' has no confidence for question 'q2'"):
        join_predictions(ANSWERS, confidences, "own")
    # A checkpoint without any confidence is refused, too.
    two_checkpoints = pd.concat([ANSWERS, ANSWERS.assign(checkpoint="c")])
    confidences = confidences.assign(question_id=["q1", "q2"])
    with pytest.raises(ValueError, match="question 'q1' at checkpoint 'c' \\(2 such"):
        join_predictions(two_checkpoints, confidences, "own")


@pytest.fixture
def halved():
    """Return answers and scores at two checkpoints, for all samples and for both halves."""
    answers = pd.DataFrame(
        [
            ("b", "test", True),
            ("c", "test", False),
            ("b", "half1", True),
            ("c", "half1", True),
            ("b", "half2", False),
            ("c", "half2", True),
        ],
        columns=["checkpoint", "split", "correct"],
    ).assign(question_id="q1")
    kinds = answers["split"].replace("test", "own")
    stated = answers.assign(answers=kinds, answers_of=answers["checkpoint"], **KEY)
    confidences = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    return answers, stated.assign(confidence=confidences).drop(columns=["split", "correct"])


SPLITS = ["test", "half1", "half2"]
USES = [
    {
        "split": split,
        "checkpoint": checkpoint,
        "answers": "own" if split == "test" else split,
        "scored_at": checkpoint,
        "answers_of": checkpoint,
    }
    for split in SPLITS
    for checkpoint in "bc"
]


def labelled(answers, scores):
    """Return predictions of an adapter for the answers of all samples and of the halves."""
    confidences = gather_confidences(scores, estimator="mine", uses=USES)
    questions = pd.DataFrame({"question_id": ["q1", "q2"], "group": ["one fact", ""]})
    settings = {"estimator": "mine", "copies": False, "splits": SPLITS}
    return join_labels(questions, confidences, answers, **settings)


def test_each_half_of_the_samples_is_an_ask_with_its_own_answer_and_confidence(halved):
    predictions = labelled(*halved)
    assert set(predictions["group"]) == {"one fact"}
    columns = ["ask", "checkpoint", "confidence", "correct"]
    assert predictions[columns].to_numpy().tolist() == [
        [0, "b", 0.1, True],
        [0, "c", 0.2, False],
        [101, "b", 0.3, True],
        [101, "c", 0.4, True],
        [102, "b", 0.5, False],
        [102, "c", 0.6, True],
    ]


def test_a_checkpoint_with_too_few_samples_leaves_one_ask(halved):
    answers, scores = halved
    answers = answers[(answers["checkpoint"] == "b") | (answers["split"] == "test")]
    assert labelled(answers, scores)["ask"].tolist() == [0, 0]

"""What each checkpoint answered, whether it was right, and who scored it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.judge.labels import CORRECT

SCORE_KEY = ["answers_of", "recipe", "trained_on", "train_dataset", "seed"]


def top_answers(
    questions: pd.DataFrame,
    clusters: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    split: str = "test",
) -> pd.DataFrame:
    """Return the prediction of one checkpoint for each question of a split.

    Parameters
    ----------
    questions, clusters, labels : DataFrame
        Tables QUESTIONS, CLUSTERS and LABELS of `persistcal.artifacts`.
    split : str, default="test"
        Split to take; excluded questions are left out.

    Returns
    -------
    DataFrame
        Columns question_id, answer, probability and correct: the most probable
        cluster of each question that has one, in the order of the questions.
        An answer that was not attempted is not correct.
    """
    asked = questions.loc[
        (questions["split"] == split) & ~questions["excluded"], ["question_id"]
    ]
    top = clusters.loc[clusters["cluster"] == 0, ["question_id", "answer", "probability"]]
    judged = labels.loc[labels["cluster"] == 0, ["question_id", "label"]]
    answers = asked.merge(top, on="question_id", validate="one_to_one").merge(
        judged, on="question_id", validate="one_to_one"
    )
    return answers.assign(correct=answers["label"] == CORRECT).drop(columns="label")


def gather_scores(
    scores: Mapping[str, pd.DataFrame], scored: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Collect the confidences of adapter estimators from the scores of all checkpoints.

    Parameters
    ----------
    scores : mapping of str to DataFrame
        Table SCORES by the checkpoint whose weights gave it.
    scored : sequence of mapping
        For each estimator, evaluated checkpoint, training dataset and seed,
        where its confidences are: keys estimator, checkpoint, scored_at and
        those of `SCORE_KEY`.

    Returns
    -------
    DataFrame
        Columns estimator, checkpoint, train_dataset, seed, question_id and
        confidence.

    Raises
    ------
    KeyError
        When a score that `scored` names is missing.
    """
    groups = {
        (checkpoint, *key): group[["question_id", "confidence"]]
        for checkpoint, table in scores.items()
        for key, group in table.groupby(SCORE_KEY)
    }
    parts = []
    for row in scored:
        key = (row["scored_at"], *(row[name] for name in SCORE_KEY))
        if key not in groups:
            raise KeyError(
                f"No scores of adapter {key[2:]} on answers of {key[1]} at {key[0]}."
            )
        names = ("estimator", "checkpoint", "train_dataset", "seed")
        parts.append(groups[key].assign(**{name: row[name] for name in names}))
    columns = ["estimator", "checkpoint", "train_dataset", "seed", "question_id", "confidence"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def join_predictions(
    answers: pd.DataFrame, confidences: pd.DataFrame, *, copies: Sequence[str]
) -> pd.DataFrame:
    """Give every answer the confidence of every estimator.

    Parameters
    ----------
    answers : DataFrame
        Columns checkpoint, question_id and correct.
    confidences : DataFrame
        Columns estimator, checkpoint, train_dataset, seed, question_id and
        confidence; rows of questions that are not in `answers` are dropped.
    copies : sequence of str
        Estimators whose confidences are those of another checkpoint in its own
        answers. Where that checkpoint had no answer, the confidence is 0.

    Returns
    -------
    DataFrame
        Columns of the table PREDICTIONS.

    Raises
    ------
    ValueError
        When an estimator that is no copy has no confidence for an answer.
    """
    runs = confidences[["estimator", "checkpoint", "train_dataset", "seed"]].drop_duplicates()
    wanted = runs.merge(answers[["checkpoint", "question_id", "correct"]], on="checkpoint")
    joined = wanted.merge(confidences, how="left", validate="one_to_one")
    empty = joined["confidence"].isna()
    if (lost := empty & ~joined["estimator"].isin(copies)).any():
        row = joined[lost].iloc[0]
        raise ValueError(
            f"Estimator {row['estimator']!r} has no confidence for question "
            f"{row['question_id']!r} at checkpoint {row['checkpoint']!r} ({lost.sum()} such "
            "answers); its rule must score every test question that has an answer."
        )
    joined.loc[empty, "confidence"] = 0.0
    return joined[
        [
            "checkpoint",
            "question_id",
            "train_dataset",
            "estimator",
            "seed",
            "confidence",
            "correct",
        ]
    ]

"""Predictions: the confidence in each labelled answer."""

import pandas as pd

from persistcal.store import artifacts

RUN = ["train_dataset", "seed"]  # an estimator's adapters, apart
RATED = ["checkpoint", "question_id", *RUN, "confidence"]


def join_predictions(
    answers: pd.DataFrame, confidences: pd.DataFrame, estimator: str, *, copies: bool = False
) -> pd.DataFrame:
    """Return the table PREDICTIONS: every answer with the confidences `RATED` of `estimator`.

    `copies` are confidences of another checkpoint in its own answers, 0 for questions without
    an answer. Other estimators must rate every answer.
    """
    runs = confidences[["checkpoint", *RUN]].drop_duplicates()
    wanted = answers[["checkpoint", "question_id", "correct"]].merge(runs, on="checkpoint")
    joined = wanted.merge(confidences, how="left", validate="one_to_one")
    empty = joined["confidence"].isna()
    unrated = answers[~answers["checkpoint"].isin(runs["checkpoint"])]
    if len(lost := pd.concat([joined[empty & (not copies)], unrated])):
        row = lost.iloc[0]
        raise ValueError(
            f"Estimator {estimator!r} has no confidence for question {row['question_id']!r} at "
            f"checkpoint {row['checkpoint']!r} ({len(lost)} such answers); it must rate "
            "every test question that has an answer."
        )
    joined.loc[empty, "confidence"] = 0.0
    return joined.assign(estimator=estimator)[artifacts.PREDICTIONS.but("ask", "group")]


def with_groups(answers: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return ANSWERS or PREDICTIONS with the group of each question."""
    groups = dict(zip(questions["question_id"], questions["group"], strict=True))
    return answers.assign(group=answers["question_id"].map(groups))

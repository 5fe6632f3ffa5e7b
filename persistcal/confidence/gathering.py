"""From confidences to predictions: every answer gets the confidence of an estimator."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.confidence.posthoc import calibrate
from persistcal.store import artifacts

RUN = ["train_dataset", "seed"]  # an estimator's adapters, apart
RATED = ["checkpoint", "question_id", *RUN, "confidence"]


def gather_scores(scores: pd.DataFrame, uses: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Return columns `RATED` of SCORES: an adapter estimator's confidences at each checkpoint.

    `uses` say where they are, with keys checkpoint, scored_at, answers and answers_of.
    """
    parts = []
    for use in uses:
        here = scores["checkpoint"] == use["scored_at"]
        here &= scores["answers"] == use["answers"]
        rows = scores[here & (scores["answers_of"] == use["answers_of"])]
        parts.append(rows.assign(checkpoint=use["checkpoint"]))
    return pd.concat(parts)[RATED]


def calibrate_runs(
    confidences: pd.DataFrame, labelled: pd.DataFrame, method: str, estimator: str
) -> pd.DataFrame:
    """Calibrate each run of `estimator` on its own confidences in labelled answers.

    Both frames have columns train_dataset, seed and confidence, `labelled` a column correct.
    """
    known = dict(list(labelled.groupby(RUN)))
    parts = []
    for run, rows in confidences.groupby(RUN, sort=False):
        fitted_on = known.get(run, labelled.head(0))
        stated, correct = fitted_on["confidence"], fitted_on["correct"]
        try:
            calibrated = calibrate(method, stated, correct, rows["confidence"])
        except ValueError as error:
            raise ValueError(f"estimators.{estimator}, posthoc {method}: {error}") from error
        parts.append(rows.assign(confidence=calibrated))
    return pd.concat(parts)


def join_predictions(
    answers: pd.DataFrame,
    confidences: pd.DataFrame,
    estimator: str,
    *,
    copies: bool = False,
) -> pd.DataFrame:
    """Return table PREDICTIONS: every answer with the `RATED` confidences of `estimator`.

    Whether they are `copies`, another checkpoint's in its own answers: where that one had no
    answer, the confidence is 0. Other estimators must rate every answer.
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
    return joined.assign(estimator=estimator)[artifacts.PREDICTIONS.schema.names]

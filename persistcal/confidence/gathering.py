"""From confidences to predictions: every answer gets the confidence of an estimator."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.confidence.posthoc import calibrate
from persistcal.store import artifacts

RUN = ["train_dataset", "seed"]  # an estimator's adapters, apart


def gather_scores(
    scores: Mapping[tuple[str, str], pd.DataFrame], uses: Sequence[Mapping[str, str]]
) -> pd.DataFrame:
    """Collect an adapter estimator's confidences from the scores of its checkpoints.

    Parameters
    ----------
    scores : mapping of (checkpoint, answers) to DataFrame
        Tables SCORES, by whose weights gave them and which answers they are of.
    uses : sequence of mapping
        Where the confidences at each checkpoint are: keys checkpoint, scored_at,
        answers and answers_of.

    Returns
    -------
    DataFrame
        Columns checkpoint, question_id, train_dataset, seed and confidence.
    """
    parts = []
    for use in uses:
        table = scores[use["scored_at"], use["answers"]]
        rows = table[table["answers_of"] == use["answers_of"]]
        parts.append(rows.assign(checkpoint=use["checkpoint"]))
    return pd.concat(parts)[["checkpoint", "question_id", *RUN, "confidence"]]


def calibrate_runs(
    confidences: pd.DataFrame, labelled: pd.DataFrame, method: str, estimator: str
) -> pd.DataFrame:
    """Calibrate each run of an estimator on its own confidences in labelled answers.

    Parameters
    ----------
    confidences : DataFrame
        Columns train_dataset, seed and confidence, among others.
    labelled : DataFrame
        Those of answers whose label is known, with a column correct.
    method : str
        One of `persistcal.confidence.posthoc.METHODS`.
    estimator : str
        Its name.

    Raises
    ------
    ValueError
        When the method cannot be fitted to a run; the message names the estimator.
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
    """Give every answer the confidences of an estimator.

    Parameters
    ----------
    answers : DataFrame
        Columns checkpoint, question_id and correct.
    confidences : DataFrame
        Columns checkpoint, question_id, train_dataset, seed and confidence; rows of
        questions that are not in `answers` are dropped.
    estimator : str
        Its name.
    copies : bool, default=False
        Whether the confidences are those of another checkpoint in its own answers.
        Where that checkpoint had no answer, the confidence is 0.

    Returns
    -------
    DataFrame
        Table PREDICTIONS.

    Raises
    ------
    ValueError
        When an estimator that is no copy has no confidence for an answer.
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

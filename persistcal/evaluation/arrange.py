"""Arrange the predictions of one model and dataset as arrays, or say why they cannot be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.ties import join_ties

ABSENT = -1  # in `AnswerArrays.correct`: the checkpoint gave no answer


class PredictionsError(ValueError):
    """The predictions are not fit for evaluation."""


class Series(NamedTuple):
    """One run of one estimator: what is averaged over seeds is a row each."""

    train_dataset: str
    estimator: str
    seed: int


class AnswerArrays(NamedTuple):
    """Correctness and confidences of one model's answers to one dataset.

    Checkpoints are in order and questions sorted, so that the order of rows has no effect. Both
    arrays have the shape (n_checkpoints, n_questions): `correct` is 1, 0, or -1 where the
    checkpoint gave no answer, and there the confidence, in [0, 1], is NaN.
    """

    checkpoints: tuple[str, ...]
    questions: NDArray[np.object_]
    correct: NDArray[np.int8]
    confidence: dict[Series, NDArray[np.float64]]

    @property
    def rows(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of the series of each (train_dataset, estimator), one per seed."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, series in enumerate(self.confidence):
            numbers.setdefault(series[:2], []).append(number)
        return numbers

    @property
    def estimators(self) -> dict[tuple[str, str], list[NDArray[np.float64]]]:
        """The confidences of each (train_dataset, estimator), one array per seed."""
        runs = list(self.confidence.values())
        return {member: [runs[number] for number in own] for member, own in self.rows.items()}


def _refuse(rows: pd.DataFrame, what: str, remedy: str) -> PredictionsError:
    columns = ["checkpoint", "question_id", "estimator", "seed", "confidence", "correct"]
    first = "; ".join(
        f"row {index}: " + ", ".join(f"{name} {row[name]}" for name in columns)
        for index, row in rows.head(3).iterrows()
    )
    return PredictionsError(f"{what} in {len(rows)} row(s) ({first}): {remedy}.")


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column of any type as numbers, NaN for what is none."""
    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return pd.Series(column.to_numpy(float, na_value=np.nan), column.index)


def _check_values(predictions: pd.DataFrame, checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the predictions with numbers as such."""
    given = predictions

    def refuse_where(wrong: pd.Series, what: str, remedy: str) -> None:
        if wrong.any():
            raise _refuse(given[wrong], what, remedy)

    if predictions.empty:
        raise PredictionsError("There are no predictions: give at least one row.")
    numbers = {name: _numbers(given[name]) for name in ("confidence", "correct", "seed")}
    predictions = given.assign(**numbers)
    refuse_where(predictions["seed"] % 1 != 0, "The seed is no whole number", "number the runs")
    refuse_where(
        ~predictions["confidence"].between(0, 1),
        "The confidence is not a number in [0, 1]",
        "give each answer's probability of being correct",
    )
    refuse_where(
        ~predictions["correct"].isin([0, 1]), "correct is neither 0 nor 1", "label the answer"
    )
    refuse_where(
        ~predictions["checkpoint"].isin(checkpoints),
        "The checkpoint is not an evaluation checkpoint",
        f"name it among the evaluation checkpoints ({', '.join(checkpoints)}), or leave its "
        "rows out",
    )
    key = ["checkpoint", "question_id", "train_dataset", "estimator", "seed"]
    refuse_where(
        predictions.duplicated(key),
        "A second prediction for the same checkpoint, question, estimator and seed",
        "keep one",
    )
    return predictions


def arrange(predictions: pd.DataFrame, checkpoints: Sequence[str]) -> AnswerArrays:
    """Arrange predictions, of one model and dataset, as arrays over checkpoints and questions.

    Refuses what cannot be arranged, or contradicts itself, with a PredictionsError that shows
    the first such rows. Estimators are in order of (train_dataset, estimator, seed).
    """
    predictions = predictions.reset_index(drop=True)
    predictions = _check_values(predictions, checkpoints)
    keys = ["train_dataset", "estimator", "seed"]
    groups = predictions.groupby(keys, sort=True)
    distinct = groups[keys].head(1).sort_values(keys)
    runs = [Series(str(t), str(e), int(s)) for t, e, s in distinct.itertuples(index=False)]
    run = groups.ngroup().to_numpy()
    time = pd.Index(checkpoints).get_indexer(pd.Index(predictions["checkpoint"]))
    question, questions = pd.factorize(predictions["question_id"], sort=True)

    shape = (len(checkpoints), len(questions))
    confidence = np.full((len(runs), *shape), np.nan)
    confidence[run, time, question] = predictions["confidence"]
    labels = predictions["correct"].to_numpy().astype(np.int8)
    correct = np.full(shape, ABSENT, np.int8)
    correct[time, question] = labels

    present = ~np.isnan(confidence)
    for series, has in zip(runs, present, strict=True):
        if not (some := has.any(axis=1)).all():
            raise PredictionsError(
                f"Estimator {series.estimator!r} (trained on {series.train_dataset}, seed "
                f"{series.seed}) has no prediction at checkpoint "
                f"{checkpoints[int(some.argmin())]!r}: every estimator needs all of "
                f"{', '.join(checkpoints)}."
            )
    if (lacking := present != (correct != ABSENT)).any():
        where = np.argwhere(lacking)
        first = "; ".join(
            f"{runs[r].estimator} (trained on {runs[r].train_dataset}, seed {runs[r].seed}) "
            f"lacks question {questions[q]} at checkpoint {checkpoints[k]}"
            for r, k, q in where[:3]
        )
        raise PredictionsError(
            f"The estimators are on different questions in {len(where)} place(s) ({first}): "
            "give all of them the same questions of a checkpoint."
        )
    if (clash := correct[time, question] != labels).any():
        raise _refuse(
            predictions[clash],
            "correct differs from another row of the same checkpoint and question",
            "an answer has one label, whoever estimates its confidence",
        )
    return AnswerArrays(
        tuple(checkpoints),
        np.asarray(questions),
        correct,
        dict(zip(runs, map(join_ties, confidence), strict=True)),
    )

"""Predictions as arrays: aligned by question, with ties joined and spellings checked."""

import logging
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

log = logging.getLogger(__name__)


_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")

_WHOLE = re.compile(r"([+-]?\d+)\.0*")

_INVISIBLE = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD])


def fold(question_id: str) -> str:
    r"""Return an identifier without the padding and type that programs add or drop.

    >>> fold("007"), fold(" 7.0"), fold("q07"), fold("2.05"), fold("cafe\u0301")
    ('7', '7', 'q7', '2.05', 'café')
    """
    text = unicodedata.normalize("NFKC", question_id).translate(_INVISIBLE)
    text = _LEADING_ZEROS.sub("", "".join(text.split()))
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def spelling_error(predictions: pd.DataFrame) -> str:
    """Describe question ids with different spellings at different states, or return "".

    `predictions` are of one dataset, and of one or several models. Spellings that occur at the
    same states belong to different questions.
    """
    keys = ["model", "checkpoint", "question_id"]
    distinct = predictions.drop_duplicates(keys)[keys].astype(str)
    states = {
        place: frozenset(ids)
        for place, ids in distinct.groupby(keys[:2], sort=False)["question_id"]
    }
    if len(set(states.values())) < 2:
        return ""
    spellings: dict[str, dict[str, list[str]]] = {}  # states by spelling, of each question
    for (model, checkpoint), ids in states.items():
        for name in sorted(ids):
            occurrences = spellings.setdefault(fold(name), {}).setdefault(name, [])
            occurrences.append(f"{checkpoint} of {model}")
    differing = [
        occurrences
        for occurrences in spellings.values()
        if len(set(map(tuple, occurrences.values()))) > 1
    ]
    if not (clash := [occurrences for occurrences in differing if len(occurrences) > 1]):
        return ""
    shared, union = frozenset.intersection(*states.values()), frozenset.union(*states.values())
    first = "; ".join(f"{name!r} at {places[0]}" for name, places in clash[0].items())
    return (
        f"the ids of {len(clash):,} questions differ in spelling ({first}), so that "
        f"{len(shared):,} of {len(union):,} ids are shared by all checkpoints and models; "
        "write the id of a question in one way"
    )


def partly_shared(questions: Mapping[str, Collection[str]]) -> str:
    """Describe how many questions are at all checkpoints, or return "" if all questions are.

    >>> print(partly_shared({"a": ["1", "2"], "b": ["2"]}))
    only 1 of 2 questions are at every checkpoint (a 2, b 1): ...
    >>> partly_shared({"a": ["1"], "b": ["1"]})
    ''
    """
    sets = [set(names) for names in questions.values()]
    shared, union = set.intersection(*sets), set.union(*sets)
    if len(shared) == len(union):
        return ""
    sizes = ", ".join(
        f"{name} {len(question_ids):,}"
        for name, question_ids in zip(questions, sets, strict=True)
    )
    return (
        f"only {len(shared):,} of {len(union):,} questions are at every checkpoint ({sizes}): "
        "a contrast set holds those that both of its checkpoints have"
    )


def shared_by_models(questions: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield a sentence for each two models that answered different questions.

    `questions` contains the questions that each model's last checkpoint answered.

    >>> list(shared_by_models({"A": ["1", "2"], "B": ["2", "3", "4"]}))
    ['A and B share 1 of 4 questions and are compared on these']
    """
    for (model, ids), (other_model, other_ids) in combinations(questions.items(), 2):
        shared, union = set(ids) & set(other_ids), set(ids) | set(other_ids)
        if len(shared) < len(union):
            yield (
                f"{model} and {other_model} share {len(shared):,} of {len(union):,} questions "
                "and are compared on these"
            )


Array = NDArray[np.float64]

ROUNDING = 1e-12  # far above the error of a few operations on [0, 1], far below any opinion


def join_ties(values: Array) -> Array:
    """Return `values` with numbers that differ only by rounding set to the smallest of them.

    Shares of a few samples are often tied, and so are conditioned confidences: given that
    exactly one of two answers is right, 0.8 against 0.6 is equivalent to 0.4 against 0.2. The
    computed numbers differ in the last bit, which AUC and Δ₀ would count as a difference.
    `values` are in [0, 1], or NaN.

    >>> bool(0.1 + 0.2 == 0.3)
    False
    >>> join_ties(np.array([0.1 + 0.2, 0.3, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    distinct, place = np.unique(values, return_inverse=True, equal_nan=False)
    return distinct[_level_starts(distinct, ROUNDING)][place].reshape(values.shape)


def _level_starts(ordered: Array, tolerance: float) -> NDArray[np.intp]:
    """Return for each of ascending numbers the position of the first number tied with it.

    Neighbours within the tolerance are tied. A level wider than the tolerance is cut.
    """
    number = np.arange(len(ordered))

    def starts_where(begins: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.maximum.accumulate(np.where(begins, number, 0))

    # NaN is last and must begin a separate level, hence the negation
    begins = ~(np.diff(ordered, prepend=-np.inf) <= tolerance)
    with np.errstate(invalid="ignore"):
        cut = np.floor((ordered - ordered[starts_where(begins)]) / tolerance)
    return starts_where(begins | ~(np.diff(cut, prepend=-1) == 0))


ABSENT = -1  # in `AnswerArrays.correct`: the checkpoint gave no answer


class PredictionsError(ValueError):
    """The predictions are not fit for evaluation."""


class Series(NamedTuple):
    """One run of an estimator: an estimator trained with one seed."""

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
        return {
            member: [runs[number] for number in numbers]
            for member, numbers in self.rows.items()
        }


def _refuse(rows: pd.DataFrame, problem: str, remedy: str) -> PredictionsError:
    columns = ["checkpoint", "question_id", "estimator", "seed", "confidence", "correct"]
    first = "; ".join(
        f"row {index}: " + ", ".join(f"{name} {row[name]}" for name in columns)
        for index, row in rows.head(3).iterrows()
    )
    return PredictionsError(f"{problem} in {len(rows)} row(s) ({first}): {remedy}.")


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column of any type as numbers, with NaN for values that are not numbers."""
    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return pd.Series(column.to_numpy(float, na_value=np.nan), column.index)


def _check_values(predictions: pd.DataFrame, checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the predictions with numbers as such."""
    given = predictions

    def refuse_where(wrong: pd.Series, problem: str, remedy: str) -> None:
        if wrong.any():
            raise _refuse(given[wrong], problem, remedy)

    if predictions.empty:
        raise PredictionsError("The table of predictions is empty; give at least one row.")
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

    Rows that cannot be arranged or contradict each other raise a PredictionsError that shows
    the first of them. Estimators are in order of (train_dataset, estimator, seed).
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
        if not (answered := has.any(axis=1)).all():
            raise PredictionsError(
                f"Estimator {series.estimator!r} (trained on {series.train_dataset}, seed "
                f"{series.seed}) has no prediction at checkpoint "
                f"{checkpoints[int(answered.argmin())]!r}: every estimator needs all of "
                f"{', '.join(checkpoints)}."
            )
    if (lacking := present != (correct != ABSENT)).any():
        positions = np.argwhere(lacking)
        first = "; ".join(
            f"{runs[r].estimator} (trained on {runs[r].train_dataset}, seed {runs[r].seed}) "
            f"lacks question {questions[q]} at checkpoint {checkpoints[k]}"
            for r, k, q in positions[:3]
        )
        raise PredictionsError(
            f"The estimators are on different questions in {len(positions)} place(s) "
            f"({first}): give all of them the same questions of a checkpoint."
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

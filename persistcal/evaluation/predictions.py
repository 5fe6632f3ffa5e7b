"""Predictions as arrays: aligned by question, with ties joined and spellings checked."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import combinations, compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ABSENT = -1  # in `AnswerArrays.correct`: the checkpoint gave no answer
ROUNDING = 1e-12  # far above the error of a few operations on [0, 1], far below any opinion
_DIGITS = re.compile(r"(\d+)")
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


def natural_key(name: str) -> tuple[list[Any], str]:
    """Return a key that sorts names by the numbers in them.

    >>> sorted(["q10", "q9"], key=natural_key)
    ['q9', 'q10']
    """
    parts: list[Any] = _DIGITS.split(str(name))  # text and numbers by turns
    digits = [part.lstrip("0") for part in parts[1::2]]
    parts[1::2] = zip(map(len, digits), digits, strict=True)  # an int has at most 4,300 digits
    return parts, str(name)


def spelling_error(predictions: pd.DataFrame) -> str:
    """Describe question ids with different spellings at different states, or return "".

    `predictions` are of one dataset, and of one or several models. Spellings that occur at the
    same states belong to different questions.
    """
    states: dict[str, frozenset[str]] = {}  # ids by state
    for (model, checkpoint), rows in predictions.groupby(["model", "checkpoint"], sort=False):
        states[f"{checkpoint} of {model}"] = frozenset(map(str, rows["question_id"].unique()))
    if len(set(states.values())) < 2:
        return ""
    spellings: dict[str, dict[str, list[str]]] = {}  # states by spelling, of each question
    for state, ids in states.items():
        for name in sorted(ids):
            spellings.setdefault(fold(name), {}).setdefault(name, []).append(state)
    clash = [
        spelled_at
        for spelled_at in spellings.values()
        if len(set(map(tuple, spelled_at.values()))) > 1
    ]
    if not clash:
        return ""
    shared, union = frozenset.intersection(*states.values()), frozenset.union(*states.values())
    first = "; ".join(f"{name!r} at {spelled_at[0]}" for name, spelled_at in clash[0].items())
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
    sizes = ", ".join(f"{name} {len(ids):,}" for name, ids in zip(questions, sets, strict=True))
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


def join_ties(values: Array) -> Array:
    """Return `values` with numbers that differ only by rounding set to the smallest of them.

    Shares of a few samples are often tied, and so are conditioned confidences. The computed
    numbers differ in the last bit, which AUC and Δ₀ would count as a difference. `values` are
    in [0, 1], or NaN.

    >>> join_ties(np.array([0.1 + 0.2, 0.3, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    distinct, level = np.unique(values, return_inverse=True, equal_nan=False)
    number = np.arange(len(distinct))
    # NaN is last and must begin a separate level, hence the negations
    begins = ~(np.diff(distinct, prepend=-np.inf) <= ROUNDING)
    starts = np.maximum.accumulate(np.where(begins, number, 0))
    with np.errstate(invalid="ignore"):  # a level that is wider than rounding is cut
        cut = np.floor((distinct - distinct[starts]) / ROUNDING)
    begins |= ~(np.diff(cut, prepend=-1) == 0)
    starts = np.maximum.accumulate(np.where(begins, number, 0))
    return distinct[starts][level].reshape(values.shape)


def drop_noise(values: Array) -> Array:
    """Return `values` with numbers that are decimals but for rounding set to the decimals.

    A mean over seeds of 0.7 can be 0.6999999999999998, which is not above a threshold of 0.7.
    Decimals of up to six digits are recognised; other numbers are unchanged.

    >>> drop_noise(np.array([0.6999999999999998, 1 - 0.82, 1 / 3])).tolist()
    [0.7, 0.18, 0.3333333333333333]
    """
    decimals = np.round(values, 6)
    return np.where(np.abs(values - decimals) <= ROUNDING, decimals, values)


NO_CONFIDENCE = "no_confidence"  # in place of an estimator, of answers with labels only


class Ask(IntEnum):
    """Whose answers a row is about: numbers in the column `ask`.

    Further asks of the same questions are 1, 2 and so on, up to `MOST`. Halves of the usual
    answers' samples are 101 and 102, those of further halvings 201 and 202, and so on.
    """

    WHOLE = 0
    AGAIN = 1
    MOST = 89
    EXAMPLES = 90  # a second ask after other few-shot examples
    HALF_1 = 101
    HALF_2 = 102


ANSWER = ["checkpoint", "question_id"]


def asks_that_repeat(predictions: pd.DataFrame) -> list[int]:
    """Return the further asks of a part of the answers, or that equal the usual ask.

    They show how often answers flip by themselves, and are not crossed. `predictions` is the
    table PREDICTIONS of one model and dataset.
    """
    if "ask" not in predictions:
        return []
    usual = predictions[predictions["ask"] == Ask.WHOLE]
    n_answers = len(usual[ANSWER].drop_duplicates())
    made = []
    for ask in sorted(predictions["ask"].unique()):
        if Ask.WHOLE < ask <= Ask.MOST:
            rows = predictions[predictions["ask"] == ask]
            is_part = len(rows[ANSWER].drop_duplicates()) < n_answers
            if is_part or not differing_checkpoints(usual, rows):
                made.append(int(ask))
    return made


def differing_checkpoints(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Return the checkpoints whose two asks differ in a label or confidence, in any order."""
    key = [*ANSWER, *Series._fields]
    content = [*key, "confidence", "correct"]
    made = []
    for checkpoint in dict.fromkeys(first["checkpoint"].astype(str)):
        first_part, second_part = (
            part.loc[part["checkpoint"].astype(str) == checkpoint, content]
            .astype(dict.fromkeys(key, str))
            .sort_values(key, ignore_index=True)
            for part in (first, second)
        )
        if not first_part.equals(second_part):
            made.append(checkpoint)
    return made


def count_flips(predictions: pd.DataFrame, asks: Sequence[int]) -> tuple[int, int]:
    """Return how many answers were given again in some asks, and how many changed the label."""
    labels = predictions.drop_duplicates([*ANSWER, "ask"]).set_index(ANSWER)
    usual = labels.loc[labels["ask"] == Ask.WHOLE, "correct"]
    repeats = labels.loc[labels["ask"].isin(asks), "correct"]
    return len(repeats), int((repeats != usual.reindex(repeats.index)).sum())


class PredictionsError(ValueError):
    """The predictions are not fit for evaluation."""


class Series(NamedTuple):
    """One run of an estimator: an estimator trained with one seed."""

    train_dataset: str
    estimator: str
    seed: int

    @property
    def member(self) -> tuple[str, str]:
        """The estimator without its seed: (train_dataset, estimator)."""
        return self.train_dataset, self.estimator


class RatedAnswers(NamedTuple):
    """The answers of one checkpoint: an estimator's confidences by seed, labels and groups."""

    runs: list[Array]
    right: Mask
    groups: NDArray[np.intp]


class AnswerArrays(NamedTuple):
    """Correctness and confidences of one model's answers to one dataset.

    Checkpoints are in order and questions sorted, so that the order of rows has no effect. Both
    arrays have the shape (n_checkpoints, n_questions): `correct` is 1, 0, or -1 where the
    checkpoint gave no answer, and there the confidence, in [0, 1], is NaN. `groups`,
    (n_questions,), numbers the groups of questions that share a fact or a document.
    """

    checkpoints: tuple[str, ...]
    questions: NDArray[np.object_]
    correct: NDArray[np.int8]
    confidence: dict[Series, Array]
    groups: NDArray[np.intp]

    @property
    def rows(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of the series of each (train_dataset, estimator), one per seed."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, series in enumerate(self.confidence):
            numbers.setdefault(series.member, []).append(number)
        return numbers

    @property
    def estimators(self) -> dict[tuple[str, str], list[Array]]:
        """The confidences of each (train_dataset, estimator), one array per seed."""
        runs: dict[tuple[str, str], list[Array]] = {}
        for series, run in self.confidence.items():
            runs.setdefault(series.member, []).append(run)
        return runs

    def rate(self, k: int, runs: Sequence[Array]) -> RatedAnswers:
        """Return the answers of checkpoint `k` with the confidences `runs` of an estimator."""
        is_given = self.correct[k] != ABSENT
        rated = [run[k, is_given] for run in runs]
        return RatedAnswers(rated, self.correct[k, is_given] == 1, self.groups[is_given])

    def answered_by_all(self, checkpoints: Iterable[int]) -> NDArray[np.intp]:
        """Return the positions of the questions that all of some checkpoints answered."""
        return np.flatnonzero((self.correct[list(checkpoints)] != ABSENT).all(axis=0))

    def n_seeds(self, member: tuple[str, str]) -> int:
        """Return the number of an estimator's training seeds, 0 if it is not trained."""
        return len(training_seeds(s.seed for s in self.confidence if s.member == member))


def training_seeds(seeds: Iterable[int]) -> set[int]:
    """Return the seeds of one estimator's training; 0 alone stands for no training."""
    numbers = set(seeds)
    return set() if numbers == {0} else numbers


def _refuse(rows: pd.DataFrame, problem: str, remedy: str) -> PredictionsError:
    columns = ["checkpoint", "question_id", "estimator", "seed", "confidence", "correct"]
    first = "; ".join(
        f"row {index}: " + ", ".join(f"{name} {row[name]}" for name in columns)
        for index, row in rows.head(3).iterrows()
    )
    return PredictionsError(f"{problem} in {len(rows)} row(s) ({first}): {remedy}.")


def _check_values(predictions: pd.DataFrame, checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the predictions with numbers as such, and refuse impossible values."""
    if predictions.empty:
        raise PredictionsError("The table of predictions is empty; give at least one row.")
    numeric = predictions.copy(deep=False)
    for name in ("confidence", "correct", "seed"):
        column = numeric[name]
        if not pd.api.types.is_numeric_dtype(column):
            column = pd.to_numeric(column.astype(object), errors="coerce")
        numeric[name] = column.to_numpy(float, na_value=np.nan)
    key = ["checkpoint", "question_id", "train_dataset", "estimator", "seed"]
    checks = (
        (numeric["seed"] % 1 != 0, "The seed is no whole number", "number the runs"),
        (
            ~numeric["confidence"].between(0, 1),
            "The confidence is not a number in [0, 1]",
            "give each answer's probability of being correct",
        ),
        (~numeric["correct"].isin([0, 1]), "correct is neither 0 nor 1", "label the answer"),
        (
            ~numeric["checkpoint"].isin(checkpoints),
            "The checkpoint is not an evaluation checkpoint",
            f"name it among the evaluation checkpoints ({', '.join(checkpoints)}), or leave "
            "its rows out",
        ),
        (
            numeric.duplicated(key),
            "A second prediction for the same checkpoint, question, estimator and seed",
            "keep one",
        ),
    )
    for is_wrong, problem, remedy in checks:
        if is_wrong.any():
            raise _refuse(predictions[is_wrong], problem, remedy)
    return numeric


def arrange(
    predictions: pd.DataFrame, checkpoints: Sequence[str], *, ask: int = Ask.WHOLE
) -> AnswerArrays:
    """Arrange predictions, of one model and dataset, as arrays over checkpoints and questions.

    Rows of other asks than `ask` are ignored; a table without this column has ask 0 only. Rows
    that cannot be arranged or contradict each other raise a PredictionsError that shows the
    first of them. Estimators are in order of (train_dataset, estimator, seed).
    """
    if "ask" in predictions:
        predictions = predictions[predictions["ask"] == ask]
    predictions = _check_values(predictions.reset_index(drop=True), checkpoints)
    keys = list(Series._fields)
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
    if (absent := ~present.any(axis=2)).any():
        r, k = np.argwhere(absent)[0]
        raise lacks_checkpoint(runs[r], checkpoints[k], checkpoints)
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
    rated = [s.estimator != NO_CONFIDENCE for s in runs]
    tied = dict(zip(compress(runs, rated), map(join_ties, confidence[rated]), strict=True))
    names = np.asarray(questions)
    shared = _group_numbers(predictions, question, len(names))
    return AnswerArrays(tuple(checkpoints), names, correct, tied, shared)


def lacks_checkpoint(
    series: Series, checkpoint: str, checkpoints: Sequence[str]
) -> PredictionsError:
    """Return the error that an estimator has no prediction at a checkpoint."""
    return PredictionsError(
        f"Estimator {series.estimator!r} (trained on {series.train_dataset}, seed "
        f"{series.seed}) has no prediction at checkpoint {checkpoint!r}; rate the answers of "
        f"{', '.join(checkpoints)}, or choose other estimators (--estimator, study.estimators)."
    )


def _group_numbers(
    predictions: pd.DataFrame, question: NDArray[np.intp], n_questions: int
) -> NDArray[np.intp]:
    """Return the number of each question's group; questions without a group are alone."""
    if "group" not in predictions or not predictions["group"].ne("").any():
        return np.arange(n_questions)
    names = np.full(n_questions, "", object)
    group = predictions["group"].to_numpy(object)
    names[question] = group
    if (clash := names[question] != group).any():
        row = predictions[clash].iloc[0]
        raise PredictionsError(
            f"question {row['question_id']!r} has the groups {row['group']!r} and "
            f"{names[question[np.argmax(clash)]]!r}; give a question one group in all rows."
        )
    return number_groups(names.tolist())


def number_groups(names: Sequence[str]) -> NDArray[np.intp]:
    """Return numbers from 0 that are equal for equal names; empty names are all different.

    >>> number_groups(["a", "", "a", ""]).tolist()
    [0, 1, 0, 2]
    """
    labels = [(name, None) if name else ("", i) for i, name in enumerate(names)]
    numbers, _ = pd.factorize(pd.Series(labels, dtype=object))
    return numbers.astype(np.intp)

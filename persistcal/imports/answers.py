"""Answers that were generated elsewhere: their rows, each checked for itself, as tables.

What several rows must agree on is in `persistcal.imports.answer_checks`.
"""

import json
import logging
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from persistcal.questions.labels import LABELS, normalise
from persistcal.store.artifacts import BEAMS, GIVEN_LABELS, QUESTIONS
from persistcal.store.user_files import (
    UserTableError,
    check_columns,
    check_rows,
    lists_of_texts,
    refuse,
    texts,
)

log = logging.getLogger(__name__)

NAMES = ("model", "checkpoint", "dataset", "question_id")

NEEDED = (*NAMES, "question", "references", "answer")

OPTIONAL = ("sample", "logprob", "token_logprobs", "label", "split")

KNOWN = (*NEEDED, *OPTIONAL)

LISTS = ("references", "token_logprobs")  # what a CSV file gives as a JSON list

CHOICES = {"label": (LABELS, ""), "split": (("train", "test"), "test")}  # and the default

_SAMPLE = re.compile(r"\d{1,18}", re.ASCII)  # what a column of whole numbers can hold

# Without the underscores, and the digits of other scripts, that Python's float takes
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

ROUNDING = 1e-5  # by which a sum of log-probabilities may pass 0

UNEQUAL = 1e-3  # relative; more is no rounding of a sum


def tidy_answers(rows: pd.DataFrame, *, file: str = "") -> pd.DataFrame:
    """Return rows of `NEEDED` and any of `OPTIONAL` columns, each checked for itself.

    `references` are tuples; sample is None, logprob, n_tokens and min_logprob are NaN, and
    label is empty where there is none; `stated` is as in BEAMS, and `place` tells the row, and
    its `file`.
    """
    stated = {str(name): name_stated(str(name)) for name in rows if name_stated(str(name))}
    known = f"{', '.join(KNOWN)}, confidence, confidence_<name>"
    unknown = f"answers may have {known}; remove or rename it"
    check_columns(list(rows.columns), NEEDED, (*OPTIONAL, *stated), unknown=unknown)
    tidy = named_rows(rows, file, "answer")
    tidy["answer"] = texts(rows, "answer", one_line=False)
    tidy["references"] = lists_of_texts(rows, "references", one_line=False)
    remedy = "give at least one accepted answer"
    check_rows(tidy, tidy["references"].map(len) == 0, "references is empty", None, remedy)
    remedy = "give an empty text if nothing was said"
    check_rows(tidy, rows["answer"].isna().to_numpy(), "answer is missing", None, remedy)
    columns = {name: rows[name].tolist() for name in OPTIONAL if name in rows}
    tidy["sample"] = _samples(tidy, columns.get("sample", [None] * len(rows)))
    _add_logprobs(tidy, columns)
    tidy["stated"] = _stated(tidy, {new: rows[name].tolist() for name, new in stated.items()})
    for name in CHOICES:
        add_choice(tidy, rows, name)
    return tidy


def named_rows(rows: pd.DataFrame, file: str, one: str) -> pd.DataFrame:
    """Return the place, the names and the question of each row; `file` where there are several.

    There is a row for `one` each.
    """
    if rows.empty:
        raise UserTableError(f"holds no row; give one for each {one}")
    of_file = f" of {file}" if file else ""
    tidy = pd.DataFrame({"place": [f"row {n}{of_file}" for n in range(1, len(rows) + 1)]})
    for name in (*NAMES, "question"):
        tidy[name] = texts(rows, name, one_line=name in NAMES)
        check_rows(tidy, tidy[name] == "", f"{name} is empty", None, "fill it in")
    return tidy


def add_choice(tidy: pd.DataFrame, rows: pd.DataFrame, name: str) -> None:
    """Add a column of `CHOICES`."""
    allowed, default = CHOICES[name]
    tidy[name] = [word.lower() or default for word in texts(rows, name)]
    wrong = ~tidy[name].isin([*allowed, default])
    check_rows(tidy, wrong, f"{name} is not valid", name, f"it may be {', '.join(allowed)}")


def name_stated(column: str) -> str:
    """Return the estimator whose confidences a column holds; empty where it holds none.

    >>> [name_stated(c) for c in ("confidence", "confidence_words", "label")]
    ['stated', 'words', '']
    """
    prefix, _, name = column.partition("_")
    return "" if prefix != "confidence" else name or "stated"


def _stated(tidy: pd.DataFrame, columns: dict[str, list[Any]]) -> list[str | None]:
    """Return the confidences of each row by estimator, as JSON; None where it has none."""
    said: list[dict[str, float]] = [{} for _ in range(len(tidy))]
    for name, values in columns.items():
        numbers = np.array([number_of(value) for value in values])
        empty = np.array([_is_empty(value) for value in values], dtype=bool)
        wrong = ~empty & ~((numbers >= 0) & (numbers <= 1))
        shown = tidy.assign(said=pd.Series(values, dtype=object))
        remedy = "give a number from 0 to 1, or nothing where none was stated"
        check_rows(shown, wrong, f"the confidence {name!r} is not valid", "said", remedy)
        for row in np.flatnonzero(~empty):
            said[row][name] = float(numbers[row])
    return [json.dumps(row) if row else None for row in said]


def _is_empty(value: object) -> bool:
    return value is None or value != value or value == ""


def _samples(tidy: pd.DataFrame, values: Sequence[Any]) -> list[int | None]:
    empty = [_is_empty(value) for value in values]
    if all(empty):
        return [None] * len(values)
    remedy = "number all or none"
    check_rows(tidy, empty, "sample is empty, but not in every row", None, remedy)
    wrong = [not _SAMPLE.fullmatch(str(value).strip()) for value in values]
    what = "sample is no whole number of up to 18 digits"
    check_rows(tidy.assign(sample=values), wrong, what, "sample", "give 0, 1, 2, …")
    return [int(value) for value in values]


def number_of(value: object) -> float:
    """Return a number that is given as a number or as text; NaN for anything else.

    >>> [number_of(value) for value in ("-1.5", "2e-1", 7, "1_0", "\uff11", True)]
    [-1.5, 0.2, 7.0, nan, nan, nan]
    """
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else np.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return np.nan
    return float(value)


def _is_logprob(value: float) -> bool:
    return bool(np.isfinite(value)) and value <= ROUNDING


def _add_logprobs(tidy: pd.DataFrame, columns: dict[str, list[Any]]) -> None:
    """Add what log-probabilities give, in all rows or none: their sum, number and least."""
    given = {}
    for name in ("logprob", "token_logprobs"):
        # A NaN is no missing value: a sum went wrong.
        empty = [value is None or value == "" for value in columns.get(name, [])]
        if not all(empty):
            what = f"{name} is missing, but not in every row"
            check_rows(tidy, empty, what, None, "give all or none")
            given[name] = columns[name]

    def check(name: str, valid: Sequence[bool], remedy: str) -> None:
        shown = tidy.assign(**{name: pd.Series(given[name], dtype=object)})
        check_rows(shown, ~np.asarray(valid), f"{name} is not valid", name, f"give {remedy}")

    tidy["logprob"], tidy["n_tokens"], tidy["min_logprob"] = np.nan, np.nan, np.nan
    if tokens := given.get("token_logprobs"):
        lists = [[number_of(x) for x in v] if isinstance(v, list) else [np.nan] for v in tokens]
        valid = [all(map(_is_logprob, values)) for values in lists]
        check("token_logprobs", valid, "a list of numbers up to 0")
        tidy["n_tokens"] = [float(len(values)) for values in lists]
        tidy["logprob"] = [sum(values) for values in lists]
        tidy["min_logprob"] = [min(values, default=np.nan) for values in lists]
    if sums := given.get("logprob"):
        numbers = np.array([number_of(value) for value in sums])
        valid = [_is_logprob(number) for number in numbers]
        check("logprob", valid, "the sum over the answer's tokens, up to 0")
        total = tidy["logprob"].to_numpy()  # NaN where there are none of tokens
        far = np.abs(numbers - total) > UNEQUAL * np.maximum(1, np.abs(total))
        what = "logprob is not the sum of token_logprobs"
        remedy = "logprob is their sum, not their mean; correct one of the columns"
        check_rows(tidy.assign(logprob=numbers), far, what, "logprob", remedy)
        tidy["logprob"] = numbers


def question_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table QUESTIONS of each dataset of tidy answers, in their order."""
    first = rows.drop_duplicates(["dataset", "question_id"])
    references = first["references"].map(list)
    questions = first.assign(
        index=first.groupby("dataset").cumcount(),
        references=references,
        any_of=references.map(len) > 1,
        category="",
        excluded=False,
        options=None,
        gold=None,
        truths=None,
    )
    return questions[[*QUESTIONS.file_columns, *QUESTIONS.schema.names]]


def beam_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table BEAMS of each model, checkpoint and dataset of tidy answers."""
    questions = rows.groupby([*BEAMS.file_columns, "question_id"], sort=False)
    beam = rows["sample"].where(rows["sample"].notna(), questions.cumcount()).astype(int)
    # Ties go to the first of a question's answers: by number, not by the order of the file.
    order = np.lexsort((beam, questions.ngroup()))
    beams = rows.assign(beam=beam, text=rows["answer"]).iloc[order]
    return beams.reindex(columns=[*BEAMS.file_columns, *BEAMS.schema.names])


def stated_names(rows: pd.DataFrame) -> list[str]:
    """Return the estimators whose confidences came with the answers."""
    return sorted({name for text in rows["stated"].dropna() for name in json.loads(text)})


def check_stated(
    rows: pd.DataFrame, computed: Collection[str], needed: Collection[str] = ()
) -> None:
    """Refuse stated confidences named like a computed estimator, and the lack of `needed` ones.

    The lack at one of several checkpoints is refused by the estimator itself.
    """
    named = set(stated_names(rows))
    if clash := sorted(named & set(computed)):
        raise UserTableError(
            f"column 'confidence_{clash[0]}' is named like estimators.{clash[0]}, which is "
            "computed from answers; give it another name"
        )
    if lost := sorted(set(needed) - named):
        column = "confidence" if lost[0] == "stated" else f"confidence_{lost[0]}"
        raise UserTableError(
            f"study.estimators names {lost[0]!r}, which the config does not compute, and no "
            f"answer has a value in a column {column!r}; add the column, or correct the name"
        )
    if named:
        log.info("Confidences are stated for %s", ", ".join(sorted(named)))


def label_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the labels that are given of tidy answers, as GIVEN_LABELS of each dataset.

    Answers that differ in case and full stops only are the same: they have one label. A
    decimal point is no full stop.
    """
    given = rows[rows["label"] != ""]
    given = given.assign(answer=given["answer"].map(normalise))
    empty = given["answer"] == ""
    check_rows(
        given,
        empty & (given["label"] == "correct"),
        "an answer that says nothing is labelled correct",
        None,
        "where nothing was said nothing is evaluated; correct the answer or its label",
    )
    if empty.any():
        log.warning(
            "%d labels of answers that say nothing are not used: these are no answers, and "
            "are evaluated neither as right nor as wrong",
            empty.sum(),
        )
    given = given[~empty]
    key = ["dataset", "question_id", "answer"]
    kinds = given.groupby(key)["label"].transform("nunique")
    if (kinds > 1).any():
        one = given[kinds > 1].iloc[0]
        same = given[(given[key] == one[key]).all(axis=1)].drop_duplicates("label")
        raise refuse(
            f"labels of the answer {one['answer']!r} to question {one['question_id']!r} "
            "disagree",
            same,
            "label",
            "give one label to each answer",
        )
    return given.drop_duplicates(key)[[*GIVEN_LABELS.file_columns, *GIVEN_LABELS.schema.names]]

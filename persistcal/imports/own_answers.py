"""Answers that were generated elsewhere: one row each, as the tables that a study reads.

What a row must hold is checked here; what several rows must agree on is in
`persistcal.imports.answer_checks`.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from persistcal.answers.equivalence import normalise
from persistcal.judge.labels import LABELS
from persistcal.questions.own import plain_text, reference_texts
from persistcal.store.artifacts import BEAMS, GIVEN_LABELS, QUESTIONS

log = logging.getLogger(__name__)

NAMES = ("model", "checkpoint", "dataset", "question_id")
NEEDED = (*NAMES, "question", "references", "answer")
OPTIONAL = ("sample", "logprob", "token_logprobs", "label", "split")
KNOWN = (*NEEDED, *OPTIONAL)
LISTS = ("references", "token_logprobs")  # what a CSV file gives as a JSON list
SPLITS = ("train", "test")
_SAMPLE = re.compile(r"\d{1,18}")  # what a column of whole numbers can hold
ROUNDING = 1e-5  # by which a sum of log-probabilities may pass 0
UNEQUAL = 1e-3  # relative; more is no rounding of a sum


class OwnAnswersError(ValueError):
    """The answers are not what they should be."""


def refuse(what: str, rows: pd.DataFrame, column: str | None, remedy: str) -> OwnAnswersError:
    """Return an error that shows the first of the offending `rows`."""
    first = rows.head(3)
    values = [""] * len(first) if column is None else [f": {v!r}" for v in first[column]]
    shown = ", ".join(
        f"{place}{value}" for place, value in zip(first["place"], values, strict=True)
    )
    return OwnAnswersError(f"{what} ({shown}); {remedy}")


def check_columns(columns: Sequence[object]) -> None:
    """Refuse rows that lack a column or have one that is not known."""
    for name in columns:
        if name not in KNOWN:
            raise OwnAnswersError(
                f"unknown column {name!r}; answers may have {', '.join(KNOWN)}; remove or "
                "rename it"
            )
    for name in NEEDED:
        if name not in columns:
            raise OwnAnswersError(f"column {name!r} is missing; add it to every row")


def tidy_answers(rows: pd.DataFrame, *, file: str = "") -> pd.DataFrame:
    """Check each row of a file for itself.

    Parameters
    ----------
    rows : DataFrame
        Columns `NEEDED` and any of `OPTIONAL`, as `read_rows` gives them: texts, and
        numbers as texts or, from parquet, as numbers.
    file : str, optional
        Its name, where there are several.

    Returns
    -------
    DataFrame
        Texts (`references` as tuples); `sample` (int, or None), `logprob` (float, NaN
        where there is none), `n_tokens` (of `token_logprobs`; NaN likewise), `label`
        (empty where there is none), `split`, and `place`: the row's number, from 1.

    Raises
    ------
    OwnAnswersError
        With what is wrong and the first such rows.
    """
    if not rows.columns.is_unique:
        name = rows.columns[rows.columns.duplicated()][0]
        raise OwnAnswersError(f"column {name!r} is there twice; keep one")
    check_columns(list(rows.columns))
    if rows.empty:
        raise OwnAnswersError("holds no row; give one for each answer")
    number = range(1, len(rows) + 1)
    tidy = pd.DataFrame(
        {"place": [f"row {n} of {file}" if file else f"row {n}" for n in number]}
    )
    columns: dict[str, list[Any]] = {name: rows[name].tolist() for name in rows.columns}
    for name in NAMES:
        tidy[name] = [
            plain_text(v, name, n) for v, n in zip(columns[name], number, strict=True)
        ]
        _refuse_empty(tidy, name, "fill it in")
    for name in ("question", "answer"):
        values = columns[name]
        if name == "answer" and (lacking := pd.Series([_is_missing(v) for v in values])).any():
            raise refuse(
                "answer is missing",
                tidy[lacking],
                None,
                "give an empty text if nothing was said",
            )
        tidy[name] = [
            plain_text(v, name, n, one_line=False) for v, n in zip(values, number, strict=True)
        ]
    _refuse_empty(tidy, "question", "fill it in")
    tidy["references"] = [
        reference_texts(value, "references", n, one_line=False)
        for value, n in zip(columns["references"], number, strict=True)
    ]
    _refuse_empty(tidy, "references", "give at least one accepted answer")
    nothing = [None] * len(rows)
    tidy["sample"] = _samples(tidy, columns.get("sample", nothing))
    _add_logprobs(tidy, columns.get("logprob", nothing), columns.get("token_logprobs", nothing))
    for name, allowed, default in (("label", LABELS, ""), ("split", SPLITS, "test")):
        words = [
            plain_text(v, name, n).lower() or default
            for v, n in zip(columns.get(name, nothing), number, strict=True)
        ]
        tidy[name] = words
        if (wrong := ~tidy[name].isin([*allowed, default])).any():
            raise refuse(
                f"{name} is not valid", tidy[wrong], name, f"it may be {', '.join(allowed)}"
            )
    return tidy


def _is_missing(value: object) -> bool:
    return value is None or value != value


def _refuse_empty(tidy: pd.DataFrame, name: str, remedy: str) -> None:
    if (empty := tidy[name].map(len) == 0).any():
        raise refuse(f"{name} is empty", tidy[empty], None, remedy)


def _samples(tidy: pd.DataFrame, values: Sequence[Any]) -> list[int | None]:
    there = pd.Series([not _is_missing(v) and v != "" for v in values])
    if not there.any():
        return [None] * len(values)
    if not there.all():
        raise refuse(
            "sample is empty, but not in every row", tidy[~there], None, "number all or none"
        )
    whole = pd.Series([bool(_SAMPLE.fullmatch(str(value).strip())) for value in values])
    if not whole.all():
        shown = tidy.assign(sample=list(values))[~whole]
        raise refuse(
            "sample is no whole number of up to 18 digits", shown, "sample", "give 0, 1, 2, …"
        )
    return [int(value) for value in values]


def _number(value: object) -> float:
    """Return a number that is given as one or as text; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return np.nan
    try:
        return float(value)
    except ValueError:
        return np.nan


def _add_logprobs(tidy: pd.DataFrame, sums: Sequence[Any], tokens: Sequence[Any]) -> None:
    """Add `logprob` and `n_tokens`, of whichever is given; all rows have them or none."""
    for name, values in (("logprob", sums), ("token_logprobs", tokens)):
        # A NaN is no missing value: somebody's sum went wrong.
        there = pd.Series([value is not None and value != "" for value in values])
        if there.any() and not there.all():
            raise refuse(
                f"{name} is missing, but not in every row",
                tidy[~there],
                None,
                "give all or none",
            )
    given = any(value is not None and value != "" for value in sums)
    in_tokens = any(value is not None and value != "" for value in tokens)
    tidy["logprob"], tidy["n_tokens"] = np.nan, np.nan
    lists = []
    if in_tokens:
        lists = [[_number(x) for x in v] if isinstance(v, list) else [np.nan] for v in tokens]
        valid = [all(np.isfinite(x) and x <= ROUNDING for x in values) for values in lists]
        _refuse_logprobs(tidy, "token_logprobs", tokens, valid, "a list of numbers up to 0")
        tidy["n_tokens"] = [float(len(values)) for values in lists]
        tidy["logprob"] = [sum(values) for values in lists]
    if given:
        numbers = np.array([_number(value) for value in sums])
        valid = list(np.isfinite(numbers) & (numbers <= ROUNDING))
        _refuse_logprobs(
            tidy, "logprob", sums, valid, "the sum over the answer's tokens, up to 0"
        )
        if in_tokens:
            total = tidy["logprob"].to_numpy()
            near = np.abs(numbers - total) <= UNEQUAL * np.maximum(1, np.abs(total))
            remedy = "logprob is their sum, not their mean; correct one of the columns"
            what = "logprob is not the sum of token_logprobs"
            if not near.all():
                raise refuse(what, tidy.assign(logprob=numbers)[~near], "logprob", remedy)
        tidy["logprob"] = numbers


def _refuse_logprobs(
    tidy: pd.DataFrame, name: str, values: Sequence[Any], valid: Sequence[bool], what: str
) -> None:
    if not all(valid):
        wrong = ~np.asarray(valid)
        shown = tidy.assign(**{name: pd.Series(list(values), dtype=object)})[wrong]
        raise refuse(f"{name} is not valid", shown, name, f"give {what}")


def question_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table QUESTIONS of one dataset's rows, in their order."""
    first = rows.drop_duplicates("question_id")
    references = [list(texts) for texts in first["references"]]
    return pd.DataFrame(
        {
            "question_id": first["question_id"].tolist(),
            "index": range(len(first)),
            "split": first["split"].tolist(),
            "question": first["question"].tolist(),
            "references": references,
            "any_of": [len(texts) > 1 for texts in references],
            "category": "",
            "excluded": False,
        }
    )[QUESTIONS.schema.names]


def beam_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table BEAMS of one checkpoint's answers to one dataset."""
    beams = rows.assign(
        beam=rows.groupby("question_id").cumcount()
        if rows["sample"].isna().all()
        else rows["sample"].astype(int),
        text=rows["answer"],
    )
    # Ties go to the first of a question's answers: by number, not by the order of the file.
    questions, _ = pd.factorize(beams["question_id"])
    order = np.lexsort((beams["beam"], questions))
    return beams.iloc[order].reindex(columns=BEAMS.schema.names)


def label_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the labels that are given of answers to one dataset, as GIVEN_LABELS.

    Raises
    ------
    OwnAnswersError
        When two rows give the same answer to a question different labels, or an empty
        answer is called correct. Answers that differ in case and full stops only are the
        same.
    """
    given = rows[rows["label"] != ""]
    given = given.assign(answer=given["answer"].map(normalise))
    empty = given["answer"] == ""
    if (wrong := empty & (given["label"] == "correct")).any():
        raise refuse(
            "an answer that says nothing is labelled correct",
            given[wrong],
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
    key = ["question_id", "answer"]
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
    return given.drop_duplicates(key)[GIVEN_LABELS.schema.names]


def select_rows(
    rows: pd.DataFrame,
    *,
    known: Mapping[str, Collection[str]],
    datasets: Collection[str],
    wanted: Collection[tuple[str, str, str]],
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows that a study asks for, and how many of what are left out.

    Parameters
    ----------
    rows : DataFrame
        Of `tidy_answers`.
    known : mapping
        By model of the config its checkpoints.
    datasets : collection of str
        Datasets of the config.
    wanted : collection of (str, str, str)
        Model, checkpoint and dataset that the study reads.

    Raises
    ------
    OwnAnswersError
        When a row is of something that the config does not know, or one of `wanted` has
        no row.
    """
    for name, there in (("model", known), ("dataset", datasets)):
        if (strange := ~rows[name].isin(list(there))).any():
            raise refuse(
                f"{name} is not in the config",
                rows[strange],
                name,
                f"known are {', '.join(there)}; correct it or add it to {name}s",
            )
    for model, checkpoints in known.items():
        of_model = rows["model"] == model
        if (strange := of_model & ~rows["checkpoint"].isin(list(checkpoints))).any():
            raise refuse(
                f"checkpoint is not in models.{model}",
                rows[strange],
                "checkpoint",
                f"known are {', '.join(checkpoints)}; correct it or add it to earlier or "
                "evaluation",
            )
    place = ["model", "checkpoint", "dataset"]
    groups = {key: len(part) for key, part in rows.groupby(place, sort=False)}
    for key in wanted:
        if key not in groups:
            raise OwnAnswersError(
                "no row is of "
                + ", ".join(f"{n} {v!r}" for n, v in zip(place, key, strict=True))
                + "; add its answers, or take it out of the study"
            )
    left_out = {", ".join(map(str, key)): n for key, n in groups.items() if key not in wanted}
    chosen = pd.MultiIndex.from_frame(rows[place]).isin(list(wanted))
    return rows[chosen], left_out

"""Checks that users' tables share: names of columns, texts, and errors that show the rows."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

# What lists of texts and of numbers look like as text: ["UK"], ['a' 'b'], [-2,7], []
_LIST = re.compile(r"""\[\s*(?:(['"]).*\1\s*|[-+.,\s\d]*)\]""", re.DOTALL)
# Labels as they are written in files
TRUTHS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}


class UserTableError(ValueError):
    """A user's table does not hold what it should; says what, where and the remedy."""


def check_columns(
    names: Sequence[object],
    needed: Collection[str],
    optional: Collection[str],
    *,
    unknown: str,
    missing: str = "add it to every row",
) -> None:
    """Refuse a column that is not known, is missing or is there twice."""
    for name in names:
        if name not in needed and name not in optional:
            raise UserTableError(f"unknown column {name!r}; {unknown}")
    for name in needed:
        if name not in names:
            raise UserTableError(f"column {name!r} is missing; {missing}")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UserTableError(f"column {twice[0]!r} is there twice; keep one")


def first_rows(rows: pd.DataFrame, column: str | None) -> str:
    """Return how an error shows rows: the places of the first three, and a column of them."""
    first = rows.head(3)
    values = [""] * len(first) if column is None else [f": {v!r}" for v in first[column]]
    return ", ".join(f"{p}{value}" for p, value in zip(first["place"], values, strict=True))


def refuse(what: str, rows: pd.DataFrame, column: str | None, remedy: str) -> UserTableError:
    """Return an error that shows the first of `rows`."""
    return UserTableError(f"{what} ({first_rows(rows, column)}); {remedy}")


def check_rows(
    rows: pd.DataFrame, wrong: ArrayLike, what: str, column: str | None, remedy: str
) -> None:
    """Refuse `rows` where some are `wrong`, see `refuse`."""
    if np.any(wrong):
        raise refuse(what, rows[np.asarray(wrong)], column, remedy)


def check_copy(
    what: str,
    model: str,
    checkpoint: str,
    other: str,
    may_be_equal: Mapping[str, bool],
    *,
    seen: str = ", as of a file that was given twice",
) -> None:
    """Refuse all that a checkpoint has where another has it, unless one may equal another."""
    if other != checkpoint and not (may_be_equal[checkpoint] or may_be_equal[other]):
        raise UserTableError(
            f"all {what} of checkpoint {checkpoint} of {model} are those of {other}{seen}; "
            "give each checkpoint its own, or if they are meant to be equal set "
            f"models.{model}.checkpoints.{checkpoint}.allow_identical_weights"
        )


def plain_text(value: object, name: str, row: int, *, one_line: bool = True) -> str:
    """Return a text or whole number as text without space around it; empty without one."""
    place = f"column {name!r} of row {row}"
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        raise UserTableError(
            f"{place} is the fraction {value}, and nobody knows with which digits it was "
            "written; save the column as text"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise UserTableError(f"{place} is of type {type(value).__name__}; give a text")
    text = str(value).strip()
    # A prompt is made of lines, and an answer ends with its line.
    if one_line and ("\n" in text or "\r" in text):
        raise UserTableError(f"{place} has a line break, which would end its prompt; remove it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserTableError(f"{place} holds half a character (a surrogate); write it whole")
    return text


def texts(rows: pd.DataFrame, name: str, *, one_line: bool = True) -> list[str]:
    """Return a column as plain texts, all empty where there is no such column."""
    values = rows[name].tolist() if name in rows else [""] * len(rows)
    return [plain_text(v, name, row, one_line=one_line) for row, v in enumerate(values, 1)]


def lists_of_texts(
    rows: pd.DataFrame, name: str, *, one_line: bool = True
) -> list[tuple[str, ...]]:
    """Return a column of lists or single texts as plain texts, without those that are empty."""
    lists = []
    for row, value in enumerate(rows[name].tolist(), start=1):
        # Nobody knows whether it is several answers or one in brackets.
        if isinstance(value, str) and _LIST.fullmatch(value.strip()):
            raise UserTableError(
                f"column {name!r} of row {row} is the text of a list, {value!r}; give several "
                "answers as a list in JSONL or parquet, and an answer in brackets as a list of "
                "it alone"
            )
        several = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        read = [plain_text(text, name, row, one_line=one_line) for text in several]
        lists.append(tuple(text for text in read if text))
    return lists

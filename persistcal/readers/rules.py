"""The rules of users' rows: rules of values, of several rows, and of second asks."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ANSWER, differing_checkpoints
from persistcal.questions.labels import CORRECT, INCORRECT, LABELS, parse_label
from persistcal.readers.columns import FileColumn, FileTable, Hint
from persistcal.readers.scales import PROBABILITIES, Scale, explain_scale, is_missing
from persistcal.store.user_files import (
    TRUTHS,
    UserTableError,
    check_columns,
    first_rows,
    list_of_texts,
    plain_text,
    read_each,
    refuse,
    round_narrow,
)

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)  # fits into a column of int64
MOST_EXACT = 2**53  # whole numbers below it are exact as float64
WIDE = 8  # bytes of a float64
# Without the underscores, and the digits of other scripts, that Python's float takes
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
SEVERAL_IDS = "have several ids"
ROUNDING = 1e-5  # tolerance for a sum of log-probabilities above 0
RUN = ["train_dataset", "estimator", "seed"]
FIRST, SECOND = 0, 1  # asks
BY_A_STUDY = 90  # least number of a half, or of an ask after other examples


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


def as_label(value: object) -> str:
    """Return the label of a truth value as people write it, or "" for anything else.

    >>> [as_label(value) for value in ("1", "No", "WAHR", "perhaps")]
    ['correct', 'incorrect', 'correct', '']
    """
    truth = TRUTHS.get(str(value).strip().lower())
    return "" if truth is None else CORRECT if truth else INCORRECT


class ValueKind(NamedTuple):
    """How to read a value: as None if it is wrong, and as `missing` if it is absent."""

    read: Callable[[Any], Any]  # raises a UserTableError if it knows what is wrong
    remedy: str = ""
    missing: Any = None
    is_missing: Callable[[Any], bool] = lambda x: x is None or x != x or x == ""
    takes_lists: bool = False


def _number(least: float, greatest: float) -> Callable[[Any], float | None]:
    def read(value: object) -> float | None:
        number = number_of(value)
        return number if np.isfinite(number) and least <= number <= greatest else None

    return read


def _whole(value: object) -> int | None:
    if _WHOLE.fullmatch(text := str(value).strip()):
        return int(text)
    number = number_of(value)
    return int(number) if number % 1 == 0 and abs(number) < MOST_EXACT else None


def _place(value: object) -> int | None:
    return place if (place := _whole(value)) is not None and place >= 0 else None


def _list(read: Callable[[Any], Any], least: int = 0) -> Callable[[Any], list[Any] | None]:
    def read_all(values: object) -> list[Any] | None:
        parts = [read(value) for value in values] if isinstance(values, list) else [None]
        return None if len(parts) < least or None in parts or "" in parts else parts

    return read_all


def _label(value: object) -> str | None:
    text = str(value).strip()
    return as_label(text) or parse_label(text)


def _split(value: object) -> str | None:
    word = plain_text(value).lower() or "test"
    return word if word in ("train", "test") else None


_text = partial(plain_text, one_line=False)
_logprob = _number(-np.inf, ROUNDING)
KINDS = {
    "word": ValueKind(
        lambda value: f"{value:g}" if isinstance(value, float) else str(value), "fill it in", ""
    ),
    "name": ValueKind(plain_text, "fill it in", ""),
    "name or nothing": ValueKind(plain_text, missing=""),
    "text": ValueKind(_text, "fill it in", ""),
    "reply": ValueKind(
        _text,
        "give an empty text if the model did not answer",
        is_missing=lambda value: value is None or value != value,
    ),
    "texts": ValueKind(
        list_of_texts, "give at least one accepted answer", (), takes_lists=True
    ),
    "label": ValueKind(_label, f"it can be 1, 0 or {', '.join(LABELS)}", "", is_missing),
    "split": ValueKind(_split, "it can be train, test", "test"),
    "truth": ValueKind(
        lambda value: TRUTHS.get(str(value).strip().lower()),
        "give 0 or 1, or nothing if it was not attempted, and --missing drop",
        np.nan,
        is_missing,
    ),
    "share": ValueKind(PROBABILITIES.read, "give a number in [0, 1]", np.nan, is_missing),
    "whole": ValueKind(_whole, "give a whole number of up to 18 digits, such as 0, 1, 2"),
    "ask": ValueKind(_whole, "number the asks 1 and 2, or leave the column out"),
    "place": ValueKind(_place, "give the place of the right option, counted from 0"),
    "logprob": ValueKind(_logprob, "give the sum over the answer's tokens, up to 0", np.nan),
    "logprobs": ValueKind(
        _list(_logprob),
        "give a list of log-probabilities, up to 0",
        takes_lists=True,
    ),
    "counts": ValueKind(
        _list(_number(1, np.inf)), "give a list of numbers, at least 1", takes_lists=True
    ),
    "options": ValueKind(
        _list(_text, least=2), "give a list of at least two texts", takes_lists=True
    ),
}
KINDS |= {
    f"{kind} or nothing": KINDS[kind]._replace(remedy=remedy)
    for kind, remedy in (
        ("truth", "give 1 or 0, or nothing"),
        ("share", "give a number in [0, 1], or nothing if none was stated"),
    )
}
SHARES = ("share", "share or nothing")
LACKS = object()  # in place of a missing value, until its column is checked
_DTYPES = {"texts": object, "logprobs": object}
_DTYPES |= dict.fromkeys(["logprob", "truth", "truth or nothing", *SHARES], float)


def read_rows(
    rows: pd.DataFrame, table: FileTable, *, file: str = "", scale: Scale | None = None
) -> pd.DataFrame:
    """Return the columns of a table after checking all names of columns and all values.

    `row` is the number of a row and `file` its file, for errors. Shares are on the `scale`, and
    the refusal of others names the scale that reads them.
    """
    check_table([*rows], table)
    if rows.empty:
        raise UserTableError(f"has no row; give one for each {table.unit}")
    tidy = pd.DataFrame({"row": np.array(rows.index) + 1})  # several samples can be of one row
    if file:
        tidy["file"] = file
    for column in table.columns:
        tidy[column.name] = read_column(rows, tidy, column, scale)
    return tidy


def check_table(present: Sequence[object], table: FileTable) -> None:
    """Refuse unknown, missing and repeated columns."""
    names = ", ".join(filter(None, [*table.names, table.further]))
    unknown = f"known are {names}; remove or rename it"
    check_columns(present, table.needed, table.optional, unknown=unknown)


def read_column(
    rows: pd.DataFrame,
    tidy: pd.DataFrame,
    column: FileColumn,
    scale: Scale | None = None,
    *,
    can_lack: bool = False,
) -> pd.Series:
    """Return a column as its kind has it, after reading each distinct value once.

    Refuse wrong values, and missing ones unless it `can_lack` them. `tidy` has the places of
    the rows.
    """
    kind, name = KINDS[column.kind], column.name
    values = rows[name] if name in rows else pd.Series([None]).repeat(len(rows))
    confidences = scale or PROBABILITIES
    is_share = column.kind in SHARES
    numbers: NDArray[np.float64] | None = None
    if is_share and not confidences.words:
        with suppress(pa.ArrowException, TypeError):  # other values than numbers
            array = pa.array(values, from_pandas=True)
            array = array if pa.types.is_floating(array.type) else array.cast(pa.float64())
            stored = array.to_numpy(zero_copy_only=False)
            is_narrow = stored.itemsize < WIDE  # then rounded
            numbers = round_narrow(stored, str(values.name)) if is_narrow else stored
    if numbers is not None:
        read: Any = numbers
        lacks = np.isnan(numbers)
        wrong = ~lacks & ~confidences.holds(numbers)
    else:
        codes, distinct = _distinct(values)
        if is_share:
            kind = kind._replace(read=confidences.read)
        found = read_each(
            lambda value: LACKS if kind.is_missing(value) else kind.read(value),
            distinct,
            name,
            lambda code: first_rows(tidy[codes == code].head(1)),
            takes_lists=kind.takes_lists,
        )
        blank = kind.missing if isinstance(kind.missing, str | tuple) else LACKS
        is_lacking = [value is LACKS or value == blank for value in found]
        wrong = np.array([value is None for value in found], bool)[codes]
        lacks = np.array(is_lacking, bool)[codes]
        found = [kind.missing if value is LACKS else value for value in found]
        read = pd.Series(found, dtype=object).to_numpy()[codes].tolist()
    if wrong.any():
        remedy, hint = kind.remedy, ""
        if is_share and scale:
            remedy, hint = explain_scale(values.tolist())
        shown = tidy.assign(**{name: pd.Series(values.tolist(), dtype=object)})
        error = refuse(f"{name} is not valid", shown[wrong], name, remedy)
        raise UserTableError(error.problem, Hint(scale=hint) if hint else None)
    if column.needed and not can_lack and lacks.any():
        raise refuse(f"{name} is empty", tidy[lacks], None, kind.remedy)
    if column.all_or_none and lacks.any() and not lacks.all():
        problem = f"{name} is missing, but not in every row"
        raise refuse(problem, tidy[lacks], None, "give all or none")
    if column.kind == "word":  # texts are stored once
        words = pd.Categorical(found, categories=list(dict.fromkeys(found)))
        return pd.Series(words[codes].remove_unused_categories())
    return pd.Series(read, dtype=_DTYPES.get(column.kind))


def _distinct(values: pd.Series) -> tuple[NDArray[Any], list[Any]]:
    """Return the place of each value among the distinct ones; lists are all distinct."""
    is_text = pd.api.types.infer_dtype(values) in ("string", "empty")
    if is_text or pd.api.types.is_numeric_dtype(values):
        codes, distinct = pd.factorize(values)
        return codes, [*distinct.tolist(), None if is_text else np.nan]  # the place -1
    return np.arange(len(values)), values.tolist()


class RepeatedError(UserTableError):
    """Two rows are of one key."""


def check_one_row(rows: pd.DataFrame, key: Sequence[str], remedy: str) -> None:
    """Refuse two rows of one key."""
    if (twice := rows.duplicated(key)).any():
        first = rows[twice].iloc[0]
        same = rows.loc[(rows[[*key]] == first[[*key]]).all(axis=1)]
        raise RepeatedError(
            f"{twice.sum()} rows repeat another, the first of "
            f"{', '.join(f'{name} {first[name]}' for name in key)} ({first_rows(same, None)}); "
            f"{remedy}"
        )


def check_equal(rows: pd.DataFrame, table: FileTable) -> None:
    """Refuse rows that differ in a column, and agree in the columns that it belongs to."""
    for column in (column for column in table.columns if column.of):
        key, name = list(column.of), column.name
        if name == "group":
            continue
        first = rows.groupby(key, sort=False)[name].transform("first")
        if (differs := rows[name] != first).any():
            row = rows[differs].iloc[0]
            same = rows[(rows[key] == row[key]).all(axis=1)]
            raise refuse(
                f"{name} of question {row['question_id']!r} of {row['dataset']} differs "
                "between rows",
                same.drop_duplicates(name),
                name,
                column.remedy
                or "a question has one; give another question another question_id",
            )


def check_ids(rows: pd.DataFrame, same: Sequence[str]) -> None:
    """Refuse questions with equal columns `same` but different ids."""
    key = ["dataset", *same]
    if (is_repeated := rows.duplicated(key)).any():
        row = rows[is_repeated].iloc[0]
        raise refuse(
            f"{is_repeated.sum()} questions of {row['dataset']} {SEVERAL_IDS}, so that they "
            f"would count several times, the first is {row['question']!r}",
            rows[(rows[key] == row[key]).all(axis=1)],
            "question_id",
            "keep one id, or word the questions differently",
        )


def check_asked(lacking: pd.DataFrame, model: str, checkpoint: str, dataset: str) -> None:
    """Refuse a checkpoint that lacks questions that others have."""
    if len(lacking):
        raise refuse(
            f"model {model}, checkpoint {checkpoint} has no row of {len(lacking)} questions of "
            f"{dataset} that others have",
            lacking,
            "question_id",
            "all checkpoints answer the same questions; add their rows",
        )


def content_of(rows: pd.DataFrame) -> tuple[int, int]:
    """Return a digest of rows in any order."""
    return int(pd.util.hash_pandas_object(rows, index=False).sum()), len(rows)


def check_copies(
    what: str,
    contents: Iterable[tuple[str, str, object, str]],
    may_be_equal: Mapping[str, Mapping[str, bool]],
) -> None:
    """Refuse two checkpoints of a model with equal contents.

    Each has the model, the checkpoint, the content, and where it was seen. Checkpoints of which
    one `may_be_equal` can have equal ones.
    """
    first: dict[tuple[str, object], str] = {}
    for model, checkpoint, content, seen in contents:
        other = first.setdefault((model, content), checkpoint)
        allowed = may_be_equal.get(model, {})
        if other != checkpoint and not (allowed.get(checkpoint) or allowed.get(other)):
            raise UserTableError(
                f"all {what} of checkpoint {checkpoint} of {model} are those of {other}{seen}; "
                "give each checkpoint its own (for checkpoints that are meant to be equal, a "
                f"study sets models.{model}.checkpoints.{checkpoint}.allow_identical_weights)"
            )


def number_asks(asks: pd.Series) -> NDArray[np.int64]:
    """Return asks of all files in their order, the first of them as 0.

    Tables that a study wrote keep their numbers of halves and of asks after other examples.

    >>> number_asks(pd.Series([1, 1, 2])).tolist(), number_asks(pd.Series([0, 2])).tolist()
    ([0, 0, 1], [0, 1])
    >>> number_asks(pd.Series([0, 101, 102])).tolist()
    [0, 101, 102]
    """
    numbers = sorted(asks.unique())
    if numbers[-1] >= BY_A_STUDY:
        return asks.to_numpy(np.int64)
    return np.searchsorted(numbers, asks).astype(np.int64)


def check_asks(rows: pd.DataFrame, *, greedy: bool = False) -> None:
    """Refuse asks of one model and dataset about other questions, and copies unless `greedy`.

    An ask of at most half of the questions, or of one checkpoint, is a control.
    """
    numbers = sorted(ask for ask in rows["ask"].unique() if ask < BY_A_STUDY)
    if len(numbers) < 2:
        return
    asks = [rows[rows["ask"] == ask] for ask in numbers]
    answers = [set(map(tuple, part[ANSWER].astype(str).to_numpy().tolist())) for part in asks]
    whole = [
        part
        for part, ids in zip(asks, answers, strict=True)
        if not (ids < answers[0] and 2 * len(ids) <= len(answers[0]))
    ]
    for first, second in combinations(whole, 2):
        _check_two(first, second, greedy=greedy)


def _check_two(first: pd.DataFrame, second: pd.DataFrame, *, greedy: bool) -> None:
    for name, noun in (("checkpoint", "checkpoints"), ("question_id", "questions")):
        first_names, second_names = (set(part[name].astype(str)) for part in (first, second))
        if first_names != second_names:
            listed = ", ".join(sorted(first_names ^ second_names)[:3])
            raise UserTableError(
                f"the two asks have other {noun}: {len(first_names ^ second_names):,} are in "
                f"one of them only ({listed}); ask all checkpoints the same questions twice, "
                "or at most half of them as a control"
            )
    shared = set(first["estimator"]) & set(second["estimator"])
    runs = [
        set(map(tuple, rated[RUN].astype(str).drop_duplicates().to_numpy().tolist()))
        for rated in (part[part["estimator"].isin(shared)] for part in (first, second))
    ]
    for _, estimator, seed in sorted(runs[0] ^ runs[1])[:1]:
        raise UserTableError(
            f"estimator {estimator!r} has the seed {seed} in one of the two asks only; rate "
            "both asks with the same seeds"
        )
    differing = differing_checkpoints(first, second)
    checkpoints = list(dict.fromkeys(first["checkpoint"].astype(str)))
    copies = [name for name in checkpoints if name not in differing]
    if copies and not (greedy and copies == checkpoints):
        raise UserTableError(
            f"two asks of checkpoint {copies[0]!r} are copies: every confidence and label is "
            "equal; ask it again without a cache and with another seed, or "
            + (
                "leave the second ask out"
                if differing
                else "say that the answers are greedy (--greedy)"
            )
        )


def join_asks(
    first: pd.DataFrame, second: pd.DataFrame, files: Collection[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return predictions with a second ask, and notes; refuse another model or dataset.

    Estimators without a second ask keep their first one. Whole asks replace halves of samples.
    """
    first, second = (_without_halves(part) for part in (first, second))
    for name in ("model", "dataset"):
        first_names, second_names = (
            list(dict.fromkeys(part[name].astype(str))) for part in (first, second)
        )
        if set(first_names) != set(second_names):
            raise UserTableError(
                f"{', '.join(files)} are about {name} {', '.join(second_names)}, and the first "
                f"files about {', '.join(first_names)}; ask the same one again"
            )
    lacking = sorted(set(first["estimator"].astype(str)) - set(second["estimator"].astype(str)))
    is_in_both = second["estimator"].isin(first["estimator"].unique())
    if not is_in_both.any():
        raise UserTableError(
            f"{', '.join(files)} have no estimator of the first files "
            f"({', '.join(lacking)}); rate the second answers in the same way"
        )
    notes = [f"Asked once only: {', '.join(lacking)}."] if lacking else []
    return pd.concat([first, second[is_in_both].assign(ask=SECOND)], ignore_index=True), notes


def _without_halves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the only ask of some files; refuse files that have two."""
    if "ask" not in rows:
        return rows
    asks = set(rows["ask"].unique())
    if any(FIRST < ask < BY_A_STUDY for ask in asks):
        raise UserTableError(
            "a file has two asks in its column ask, and --again gives another one; leave "
            "--again out, or the rows of the file's second ask"
        )
    return rows[rows["ask"] == FIRST]

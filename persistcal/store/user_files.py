"""Read users' CSV, JSON and parquet files, with or without gzip, and check their rows.

Texts that look like numbers stay texts.
"""

import codecs
import csv
import gzip
import io
import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from persistcal.store.files import sha256
from persistcal.store.replies import LONGEST_FIELD
from persistcal.store.sheets import LONGEST_SHOWN, MARKS, cut

log = logging.getLogger(__name__)

DELIMITERS = ",;\t|"
BATCH = 512  # rows of CSV that become columns at once; with more, Python collects garbage
TABLES, JSON = (".csv", ".tsv"), (".jsonl", ".ndjson", ".json")  # kinds of text files
FORMATS = "give .csv, .tsv, .jsonl, .json or .parquet"
EMPTY = "is empty; give a heading and a row for each answer"
GZIP = b"\x1f\x8b"  # first bytes of a compressed file
FIRST_ROWS = 100  # rows that show the fields of nested objects
MOST_NAMES = 30  # that a message lists
LEAST_FLOAT32 = 1e-3  # smaller numbers do not show whether they were float32
DIGITS = {"float16": 3, "float32": 6}  # significant decimal digits of these types
# Labels in files
TRUTHS = {word: float(mark) for word, mark in MARKS.items()}
TRUTHS |= dict.fromkeys(["1.0", "t", "correct", "right"], 1.0)
TRUTHS |= dict.fromkeys(["0.0", "f", "incorrect", "wrong"], 0.0)
# The first line that Excel writes
_DELIMITER_LINE = re.compile(
    r"\ufeff?\"?sep=([,;\t|])\"?\r?\n", re.IGNORECASE
)  # Excel writes it
# Lists of texts or numbers that were written as text: ["UK"], ['a' 'b'], [-2,7], []
_LIST = re.compile(r"""\[\s*(?:(['"]).*\1\s*|[-+.,\s\d]*)\]""", re.DOTALL)


Choose = Callable[[list[str]], Mapping[str, str]]


class Keep(NamedTuple):
    """The rows of a file that are read, by the values of some columns."""

    names: Sequence[str]
    is_kept: Callable[..., bool]


@contextmanager
def name_files_in_errors(*files: str) -> Iterator[None]:
    """Raise errors in the ``with`` block as UserTableErrors that begin with the file names."""
    try:
        yield
    except (ValueError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the disk, not of the file's content
        if isinstance(error, UserTableError) and error.hint:
            raise UserTableError(f"{', '.join(files)}: {error.problem}", error.hint) from error
        raise UserTableError(f"{', '.join(files)}: {error}.") from error


def digests_of(*files: str) -> dict[str, str]:
    """Return and log the SHA-256 of each file, for the tables that are made from it."""
    digests = {file: sha256(file) for file in files}
    for file, digest in digests.items():
        log.info("%s has the SHA-256 %s", file, digest)
    return digests


def kind_of(path: str) -> str:
    """Return the suffix of a file's name without ``.gz``, in lower case, such as ``.csv``."""
    return Path(path.removesuffix(".gz")).suffix.lower()


def is_inspect_log(file: str) -> bool:
    """Return whether a file is a log of Inspect, which is `.eval` or one JSON object."""
    if kind_of(file) != ".json" or not Path(file).is_file():
        return kind_of(file) == ".eval"
    with Path(file).open("rb") as opened:
        return bool(re.match(rb'\s*\{\s*"version":\s*\d+,\s*"status"', opened.read(1000)))


def read_file(
    path: str,
    *,
    known_names: Collection[str],
    lists: Collection[str] = (),
    choose: Choose | None = None,
    keep: Keep | None = None,
) -> pd.DataFrame:
    """Return the rows of a CSV, JSON or parquet file, also in gzip.

    Numbers in CSV and JSON stay texts. The `known_names` of columns determine the delimiter of
    a CSV file. A field in its columns `lists` that begins with ``[`` is parsed as JSON.
    `choose` receives the names of columns, with paths of nested fields, before a table is read.
    It raises an error if they are wrong, and returns the new name of each column to read.
    Rows that `keep` leaves out need no memory; the index numbers all rows of the file from 0.
    An empty, damaged or ambiguous file raises a ValueError.
    """
    kind, chosen = kind_of(path), None
    with _opened(path) as file:
        if not file.read(1):
            raise ValueError(EMPTY)
        file.seek(0)
        if kind == ".parquet":
            rows, chosen = _parquet(file, known_names, choose, keep)
        elif kind in TABLES:
            rows, chosen = _csv(file, known_names, lists, choose, keep)
        elif kind in JSON:
            objects = list(_json_objects(_decode(file.read())))
            if not objects:
                raise ValueError(EMPTY)
            rows = pd.DataFrame(objects, dtype=object)
            chosen = choose(paths_of(rows)) if choose else None
            if keep:
                rows = rows[[keep.is_kept(*key) for key in rows[[*keep.names]].to_numpy()]]
        else:
            raise ValueError(f"files of kind {kind!r} are not read; {FORMATS}")
    if chosen is None:
        return with_paths(rows, known_names)
    return with_paths(rows, chosen)[list(chosen)].rename(columns=chosen)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it is gzip."""
    with Path(path).open("rb") as file:
        is_gzip = file.read(2) == GZIP
        file.seek(0)
        try:
            yield cast(IO[bytes], gzip.open(file)) if is_gzip else file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"is not a whole gzip file ({error}); compress it again"
            ) from error
        except UnicodeDecodeError:
            with _opened(path) as whole:
                _decode(whole.read())  # names the line
            raise


def leaf_paths(values: Mapping[Any, object], start: str = "") -> list[str]:
    """Return the paths of the values in nested objects.

    >>> leaf_paths({"id": 1, "output": {"raw": "Rome", "n": [1]}})
    ['id', 'output.raw', 'output.n']
    """
    return [
        path
        for name, value in values.items()
        for path in (
            leaf_paths(value, f"{start}{name}.")
            if isinstance(value, Mapping) and value
            else [f"{start}{name}"]
        )
    ]


def paths_of(rows: pd.DataFrame) -> list[str]:
    """Return the names of columns; nested objects have one for each path in the first rows."""
    first = rows.head(FIRST_ROWS).to_dict("records")
    return list(dict.fromkeys(path for row in first for path in leaf_paths(row)))


def with_paths(rows: pd.DataFrame, paths: Collection[str]) -> pd.DataFrame:
    """Return nested rows with the values of `paths`, such as ``output.raw`` or ``scores.0``."""
    nested: dict[str, pd.Series] = {}
    for path in paths:
        first, *parts = path.split(".")
        if not parts or path in rows or first not in rows:
            continue
        values = rows[first]
        for part in parts:
            values = values.map(partial(_part, name=part))
        nested[path] = values
    return rows.assign(**nested)


def _part(value: object, name: str) -> object:
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return value.get(name) if isinstance(value, dict) else None


def columns_of(path: str, *, known_names: Collection[str]) -> list[str]:
    """Return the names of a table's columns, with paths of nested fields."""
    with _opened(path) as file:
        if kind_of(path) == ".parquet":
            return leaf_paths(_nested(pq.read_schema(file)))
        return next(_csv_rows(file, known_names))


def _decode(content: bytes, *, whole: bool = True) -> str:
    """Return the UTF-8 text of a file, which can be truncated unless it is `whole`."""
    if b"\0" in content:
        raise ValueError("holds zero bytes, as UTF-16 does; save it as UTF-8")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(content, final=whole)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02X} in line {line}"
        raise ValueError(f"is not UTF-8 text ({byte}); save it as UTF-8") from error


def _checked_names(names: list[str], known_names: Collection[str]) -> list[str]:
    """Return the names of columns; refuse a known name that is there twice, in any case."""
    repeated = {plain_name(name) for name, count in Counter(names).items() if count > 1}
    repeated &= set(map(plain_name, known_names))
    for name in names:
        if plain_name(name) in repeated:
            raise ValueError(f"column {name!r} is there twice; keep one")
    return names


def plain_name(name: object) -> str:
    """Return the name of a column without case, spaces and hyphens.

    >>> plain_name(" Question ID")
    'question_id'
    """
    return re.sub(r"[\s_-]+", "_", str(name).strip().casefold())


def delimiter_of(text: str, known_names: Collection[str]) -> str:
    """Return the delimiter that gives the heading of `text` most `known_names`."""
    if line := _DELIMITER_LINE.match(text):
        return line[1]
    heading = re.split(r"[\r\n]", text.lstrip("\r\n")[:10_000], maxsplit=1)[0]
    names = {d: next(csv.reader([heading], delimiter=d), []) for d in DELIMITERS}
    expected = {*map(plain_name, known_names)}
    counts = {d: len({*map(plain_name, row)} & expected) for d, row in names.items()}
    return max(DELIMITERS, key=lambda d: counts[d] if len(names[d]) > 1 else 0)


def _csv(
    file: IO[bytes],
    known_names: Collection[str],
    lists: Collection[str],
    choose: Choose | None,
    keep: Keep | None,
) -> tuple[pd.DataFrame, Mapping[str, str] | None]:
    """Return the rows of a CSV file, and the new names of its columns."""
    rows = _csv_rows(file, known_names, lists)
    names = next(rows)
    chosen = choose(names) if choose else None
    index: list[int] | None = None
    if keep:
        index = []
        rows = _kept(rows, keep, [names.index(name) for name in keep.names], index)
    read = [n for n, name in enumerate(names) if chosen is None or name in chosen]
    parts: list[list[Any]] = [[] for _ in read]
    while batch := list(islice(rows, BATCH)):
        fields = list(zip(*batch, strict=True))
        for part, n in zip(parts, read, strict=True):
            is_list = plain_name(names[n]) in lists
            part.append(fields[n] if is_list else pa.array(fields[n], pa.string()))
    columns = {
        place: pa.chunked_array(part).to_pandas()
        if part and isinstance(part[0], pa.Array)
        else pd.Series([value for values in part for value in values], dtype=object)
        for place, part in zip(read, parts, strict=True)
    }
    made = pd.DataFrame(columns)
    made.index = made.index if index is None else pd.Index(index)
    return made.set_axis([names[n] for n in read], axis="columns"), chosen


def _kept(
    rows: Iterable[list[Any]], keep: Keep, places: Sequence[int], index: list[int]
) -> Iterator[list[Any]]:
    """Yield the rows to keep, and add their numbers to `index`."""
    for number, row in enumerate(rows):
        if keep.is_kept(*[row[place] for place in places]):
            index.append(number)
            yield row


def _csv_rows(
    file: IO[bytes], known_names: Collection[str], lists: Collection[str] = ()
) -> Iterator[list[Any]]:
    """Yield the names of the columns, and then the rows that have any text."""
    beginning = _decode(file.read(1 << 16), whole=False).lstrip("\r\n")
    if not beginning.strip():
        raise ValueError(EMPTY)
    file.seek(0)
    delimiter = delimiter_of(beginning, known_names)
    is_named = bool(_DELIMITER_LINE.match(beginning))
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    names: list[str] = []
    may_be_lists: list[int] = []
    limit, line = csv.field_size_limit(LONGEST_FIELD), 1
    try:
        for row in reader:
            fields: list[Any] = row
            if not names:
                if row and not is_named:
                    names = _checked_names(row, known_names)
                    may_be_lists = [n for n, x in enumerate(names) if plain_name(x) in lists]
                    yield names
                is_named &= not row
            elif row and len(row) != len(names):
                raise ValueError(
                    f"line {line} has {len(row)} fields, but the heading has {len(names)}; put "
                    "a text that holds the delimiter in double quotes"
                )
            elif row and (row[0].strip() or any(map(str.strip, row))):
                for n in may_be_lists:
                    fields[n] = _json_list(row[n], names[n], line)
                yield fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {line} is not CSV ({error}); correct it") from error
    finally:
        csv.field_size_limit(limit)


def _json_list(field: str, name: str, line: int) -> object:
    """Return the JSON list in a field, or the field itself if it is not a list."""
    if not field.lstrip().startswith("["):
        return field
    try:
        return json.loads(field, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError as error:
        raise ValueError(
            f"column {name!r} of line {line} begins like a list but is no JSON list ({error}); "
            'write ["a", "b"]'
        ) from error


def _parquet(
    file: IO[bytes],
    known_names: Collection[str],
    choose: Choose | None,
    keep: Keep | None,
) -> tuple[pd.DataFrame, Mapping[str, str] | None]:
    """Return the rows of a parquet file, and the new names of its columns."""
    index: list[int] | None = None
    try:
        opened = pq.ParquetFile(file)
        names = _checked_names(opened.schema_arrow.names, known_names)
        chosen = choose(leaf_paths(_nested(opened.schema_arrow))) if choose else None
        columns = None if chosen is None else list(chosen)
        if keep is None:
            table = opened.read(columns=columns)
        else:
            index, batches, n_rows = [], [], 0
            for batch in opened.iter_batches(columns=columns):
                keys = zip(*(batch[name].to_pylist() for name in keep.names), strict=True)
                kept = [number for number, key in enumerate(keys) if keep.is_kept(*key)]
                index += [n_rows + number for number in kept]
                n_rows += len(batch)
                batches.append(batch.take(pa.array(kept, pa.int64())))
            table = pa.Table.from_batches(batches, batches[0].schema if batches else None)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"is not a whole parquet file ({error}); write it again") from error
    names = table.column_names
    made = pd.DataFrame(dict(enumerate(map(_values, table.columns))))
    made.index = made.index if index is None else pd.Index(index)
    return made.set_axis(names, axis="columns"), chosen


def _nested(fields: Iterable[pa.Field]) -> dict[str, object]:
    return {f.name: _nested(f.type) if pa.types.is_struct(f.type) else None for f in fields}


def _values(column: pa.ChunkedArray) -> pd.Series:
    """Return a column of parquet; integers with missing values stay integers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.to_pandas()
    is_whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if pa.types.is_floating(kind) or (is_whole and not column.null_count):
        return pd.Series(column.to_numpy())
    return pd.Series(column.to_pylist(), dtype=object)


def _json_objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the objects of a JSON array, a single one, or that of each line with any text."""
    try:
        whole = _json(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("["):
            raise ValueError(f"is no JSON array ({error}); correct it") from error
        whole = None
    if isinstance(whole, dict):
        if whole and all(isinstance(value, dict | list) for value in whole.values()):
            raise ValueError(
                f"is one JSON object with the lists {', '.join(whole):.60}; write an object "
                "for each row, one per line or in an array (in pandas, orient='records')"
            )
        yield whole
        return
    parts = whole if isinstance(whole, list) else text.rstrip().split("\n")
    for number, part in enumerate(parts, start=1):
        place, row = f"element {number} of the array", part
        if parts is not whole:
            if not part.strip():
                continue
            place = f"line {number}"
            try:
                row = _json(part)
            except (ValueError, RecursionError) as error:
                last = ", or write the file again: it may be cut off" * (number == len(parts))
                raise ValueError(f"{place} is not JSON ({error}); correct it{last}") from error
        if not isinstance(row, dict):
            raise ValueError(f"{place} is not a JSON object; write {{…}} there")
        yield row


def _json(text: str) -> Any:  # noqa: ANN401
    return json.loads(
        text,
        object_pairs_hook=_object,
        parse_int=str,
        parse_float=str,
        parse_constant=lambda name: None if name == "NaN" else name,
    )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key is there twice")
    return record


class UserTableError(ValueError):
    """A user's table is wrong; the message names the problem, the location and the remedy.

    `hint` names options of the command that can read the table.
    """

    def __init__(self, problem: str, hint: object = None) -> None:
        self.problem, self.hint = problem, hint
        super().__init__(f"{problem}; give {hint} if these are meant." if hint else problem)


def check_columns(
    names: Sequence[object],
    needed: Collection[str],
    optional: Collection[str],
    *,
    unknown: str,
    missing: str = "add it to every row",
) -> None:
    """Raise a UserTableError if a column is unknown, missing or duplicated."""
    for name in names:
        if name not in needed and name not in optional:
            raise UserTableError(f"unknown column {name!r}; {unknown}")
    for name in needed:
        if name not in names:
            raise UserTableError(f"column {name!r} is missing; {missing}")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UserTableError(f"column {twice[0]!r} is there twice; keep one")


def list_names(names: Iterable[object]) -> str:
    """Return names for a message, at most `MOST_NAMES` of them."""
    listed = [str(name)[:LONGEST_SHOWN] or "(no name)" for name in dict.fromkeys(names)]
    more = len(listed) - MOST_NAMES
    return ", ".join(listed[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def first_rows(rows: pd.DataFrame, column: str | None = None) -> str:
    """Return the places of the first three rows, and their values in a column, as text."""
    first = rows.head(3)
    places = [f"row {row}" for row in first["row"]]
    if "file" in first:
        places = [f"{p} of {file}" for p, file in zip(places, first["file"], strict=True)]
    values = [""] * len(first) if column is None else [f": {cut(v)}" for v in first[column]]
    return ", ".join(f"{p}{value}" for p, value in zip(places, values, strict=True))


def refuse(problem: str, rows: pd.DataFrame, column: str | None, remedy: str) -> UserTableError:
    """Return an error that shows the first rows, for the caller to raise."""
    return UserTableError(f"{problem} ({first_rows(rows, column)}); {remedy}")


def check_rows(
    rows: pd.DataFrame, wrong: ArrayLike, problem: str, column: str | None, remedy: str
) -> None:
    """Raise the error of `refuse` if any row is `wrong`."""
    if np.any(wrong):
        raise refuse(problem, rows[np.asarray(wrong)], column, remedy)


def check_groups(
    names: Sequence[str] | pd.Series, questions: Sequence[str] | pd.Series
) -> None:
    """Refuse a column `group` with gaps, or with one group for all questions."""
    table = pd.DataFrame({"group": list(names), "question_id": list(questions)})
    if (table["group"] == "").all():
        return
    if (lacking := table["group"] == "").any():
        raise UserTableError(
            f"group is empty in {lacking.sum():,} rows, first for question "
            f"{table.loc[lacking, 'question_id'].iloc[0]!r}; give each question a group (its "
            "own id if it is alone), or leave the column out"
        )
    if table["group"].nunique() == 1 and table["question_id"].nunique() > 1:
        raise UserTableError(
            f"all questions have the group {table['group'].iloc[0]!r}, so that nothing is "
            "known about other groups; give each question the fact or document that it is "
            "about, or leave the column out"
        )
    groups = table.drop_duplicates()
    if (twice := groups.duplicated("question_id", keep=False)).any():
        question = groups.loc[twice, "question_id"].iloc[0]
        of_question = groups.loc[groups["question_id"] == question, "group"]
        raise UserTableError(
            f"question {question!r} has the groups {', '.join(map(repr, of_question))}; give a "
            "question one group in all rows"
        )


def plain_text(value: object, *, one_line: bool = True) -> str:
    """Return a text or integer as stripped text, and a missing value as an empty text."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        raise UserTableError(
            f"is the fraction {value}, and nobody knows with which digits it was written; save "
            "the column as text"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise UserTableError(f"is of type {type(value).__name__}; give a text")
    text = str(value).strip()
    # Prompts consist of lines, and an answer ends at its line's end.
    if one_line and ("\n" in text or "\r" in text):
        raise UserTableError("has a line break, which would end its prompt; remove it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserTableError("holds half a character (a surrogate); write it whole")
    return text


def list_of_texts(value: object, *, one_line: bool = False) -> tuple[str, ...]:
    """Return a list or a single text as a tuple of texts that are not empty."""
    # A text in brackets can mean several answers or one answer.
    if isinstance(value, str) and _LIST.fullmatch(value.strip()):
        raise UserTableError(
            f"is the text of a list, {cut(value)}; give several answers as a list in JSONL or "
            "parquet, and an answer in brackets as a list of it alone"
        )
    several = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
    read = [plain_text(text, one_line=one_line) for text in several]
    return tuple(text for text in read if text)


def read_each(
    read: Callable[[Any], Any],
    values: Iterable[Any],
    name: str,
    place: Callable[[int], str] = lambda n: f"row {n + 1}",
    *,
    takes_lists: bool = True,
) -> list[Any]:
    """Read each value of a column; a refusal names the column and the place of the value."""
    made = []
    for n, value in enumerate(values):
        try:
            if not takes_lists and isinstance(value, list | dict | np.ndarray):
                raise UserTableError(f"holds {cut(value)}; give one value")
            made.append(read(value))
        except UserTableError as error:
            raise UserTableError(f"column {name!r} of {place(n)} {error}") from error
    return made


def texts(rows: pd.DataFrame, name: str, *, one_line: bool = True) -> list[str]:
    """Return a column as plain texts, which are empty if the column is missing."""
    values = rows[name].tolist() if name in rows else [""] * len(rows)
    return read_each(partial(plain_text, one_line=one_line), values, name)


def round_narrow(
    values: NDArray[Any],
    name: str,
    estimators: NDArray[Any] | None = None,
    versions: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return float32 rounded to 6 significant digits, and float16 to 3, as float64.

    0.1 as float16 is 0.09998, which would break ties between differences of confidences. Values
    that were float32 before they became text or float64 are recognised: one is exact in float32
    with more than 12 digits, or all of one version are exact to ten decimals and some have more
    than 6. Then all values are rounded, or those of the same estimator, so that its versions
    stay comparable.
    The log contains a line about each rounding; other values are returned unchanged.

    >>> round_narrow(np.array([float(np.float32(0.1)), 0.5]), "confidence").tolist()
    [0.1, 0.5]
    """
    kind = str(values.dtype.newbyteorder("=")) if isinstance(values, np.ndarray) else ""
    digits = DIGITS.get((kind or str(values.dtype)).lower())  # pandas writes Float32
    rows: NDArray[np.bool_] | slice = slice(None)
    if digits is None and kind == "float64":
        was = np.zeros(len(values), bool)
        numbers = np.zeros(len(values), int) if versions is None else versions
        order = np.argsort(numbers, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            was[group] = _were_float32(values[group])
        if was.any():
            digits = DIGITS["float32"]
        if estimators is not None:
            rows = np.isin(estimators, np.unique(estimators[was]))
    if digits is None:
        return values
    log.info("%s: %s, rounded to %d significant digits", name, values.dtype, digits)
    rounded = np.array(values, float)
    rounded[rows] = round_digits(rounded[rows], digits)
    return rounded


def _were_float32(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values show that they were float32."""
    is_shown = np.isfinite(values) & (values > LEAST_FLOAT32)
    present = values[is_shown]
    with np.errstate(over="ignore"):
        narrow = present.astype(np.float32).astype(float)
    is_exact = narrow == present
    was = is_exact & (round_digits(present, 12) != present)
    # JSON of pandas has ten decimals: 0.1000000015.
    if not is_exact.all() and present.max() > 0.1 and (np.round(narrow, 10) == present).all():
        was |= round_digits(present, 6) != present
    is_shown[is_shown] = was
    return is_shown


def round_digits(wide: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return positive numbers with so many significant digits; 0 and NaN stay."""
    exponent = np.floor(np.log10(wide, where=wide > 0, out=np.zeros_like(wide)))
    scale = 10.0 ** (digits - 1 - exponent)
    return np.round(wide * scale) / scale

"""Read, check and write tables: parquet files with a schema and a digest, and CSV files."""

import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from persistcal.store.files import FilePath, digest, write_whole, written_whole
from persistcal.store.sheets import escape_formula, unescape_formula

log = logging.getLogger(__name__)

TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "ints": pa.list_(pa.int64()),
    "reals": pa.list_(pa.float64()),
}

PARAMETERS = "parameters_sha256"  # in metadata, the digest of the parameters of the table's job

ENDING = re.compile(r"(\.shard\d+of\d+)?\.parquet$")

SEVERAL = "imported"  # file name when a file contains several estimators

NAMES = [
    *("model", "other_model", "dataset", "train_dataset", "checkpoint", "earlier", "later"),
    *("estimator", "recipe", "trained_on"),
]


class TableError(ValueError):
    """A table does not have its schema, or its file is damaged."""


class Table(NamedTuple):
    """Name, schema and key of an artifact."""

    name: str  # plural noun; also the artifact's folder below the results
    rule: str  # the rule or rules that make it
    schema: pa.Schema  # only nullable fields can have missing values
    key: tuple[str, ...]  # columns that identify a row
    file_columns: tuple[str, ...] = ()  # columns with one value per file, such as the model
    path_columns: tuple[str, ...] = ()  # columns in a file's path, by default `file_columns`
    defaults: tuple[tuple[str, Any], ...] = ()  # values of columns that a frame can lack

    @classmethod
    def parse(cls, made: str, columns: str, *, path_columns: str = "") -> "Table":
        """Return a table from its name and rule, `made`, and a text that describes its columns.

        A column is a name, then ``@`` if it has one value per file, ``!`` if it belongs to the
        key or ``?`` if values can be missing, then a colon and a name in `TYPES` unless it is
        text. ``=`` and a whole number, or nothing for an empty text, is the value of a column
        that a frame can lack.

        >>> table = Table.parse("labels from judge", "model@ id! n!:int label share?:real")
        >>> table.file_columns, table.key, table.schema.types[1], table.schema.names[-1]
        (('model',), ('id', 'n'), DataType(int64), 'share')
        """
        name, _, rule = made.partition(" from ")
        described = re.findall(r"(\w+)([@!?]?):?(\w*)(=\d*)?", columns)
        fields = [
            pa.field(column, TYPES[kind or "text"], nullable=mark == "?")
            for column, mark, kind, _ in described
            if mark != "@"
        ]
        per_file, key = (
            tuple(column for column, mark, *_ in described if mark == wanted) for wanted in "@!"
        )
        defaults = tuple((c, int(d[1:]) if d[1:] else "") for c, *_, d in described if d)
        in_path, schema = tuple(path_columns.split()), pa.schema(fields)
        return cls(name, rule, schema, key, per_file, in_path, defaults)

    def fill(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return `frame` with the defaults of the columns that it lacks.

        >>> table = Table.parse("asks from ask", "question_id! ask!:int=0 group=")
        >>> table.fill(pd.DataFrame({"question_id": ["q1"]})).to_dict("records")
        [{'question_id': 'q1', 'ask': 0, 'group': ''}]
        """
        return frame.assign(**{n: v for n, v in self.defaults if n not in frame})

    def but(self, *names: str) -> list[str]:
        """Return the names of all columns except `names`."""
        return [name for name in self.schema.names if name not in names]

    def write(self, frame: pd.DataFrame, path: str, values: Mapping[str, Any]) -> None:
        """Write `frame` as CSV or parquet; fill missing columns from `values`.

        See `write` for the metadata of parquet.
        """
        columns = [*self.file_columns, *self.schema.names]
        missing = {n: values[n] for n in columns if n in values and n not in frame}
        frame = frame.assign(**missing)
        for name in self.file_columns:
            if name in frame.columns and (frame[name].astype(str) != str(values[name])).any():
                raise TableError(
                    f"{path}: {self.rule} must write rows of {name} {values[name]!r} but also "
                    f"has some of {frame[name].astype(str).unique().tolist()}."
                )
        frame = frame.drop(columns=[n for n in self.file_columns if n not in self.schema.names])
        if str(path).endswith(".csv"):
            write_csv(frame, path, self)
        else:
            write(frame, path, self, values=values)


def check(frame: pd.DataFrame, table: Table, path: FilePath) -> pa.Table:
    """Return `frame` as an arrow table with the schema of `table`, or raise a TableError.

    The error is about a column that is missing, unknown or of the wrong type, a missing value,
    or a key that occurs twice. Its message begins with `path`.
    """

    def refuse(problem: str) -> TableError:
        return TableError(f"{path}: {problem} (table '{table.name}', made by {table.rule}).")

    names, frame = table.schema.names, table.fill(frame)
    if missing := [name for name in names if name not in frame.columns]:
        raise refuse(f"column {missing[0]!r} is missing; it needs {', '.join(names)}")
    if unknown := [name for name in frame.columns if name not in names]:
        raise refuse(f"unknown column {unknown[0]!r}; it can have only {', '.join(names)}")
    for field in table.schema:
        if not field.nullable and frame[field.name].isna().any():
            empty = int(frame[field.name].isna().to_numpy().argmax())
            raise refuse(f"column {field.name!r} has no value in row {empty}")
    if (twice := frame.duplicated(list(table.key))).any():
        row = frame.loc[twice, list(table.key)].iloc[0].to_dict()
        raise refuse(f"two rows have the key {row}")
    try:
        return pa.Table.from_pandas(frame[names], schema=table.schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise refuse(f"a column has the wrong type: {error}") from error


def empty(table: Table) -> pd.DataFrame:
    """Return a frame without rows that has the columns of `table`."""
    return table.schema.empty_table().to_pandas()


def _column_parts(values: pa.Array) -> Iterator[Any]:
    """Yield the type, length, missing values and values of a column, for a digest."""
    kind = "list" if pa.types.is_list(values.type) else values.type
    yield f"{kind} {len(values)}"
    yield values.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False).data
    if kind == "list":
        yield pc.fill_null(pc.list_value_length(values), 0).to_numpy().data
        yield from _column_parts(values.flatten())
    elif pa.types.is_string(values.type):
        texts = pc.fill_null(values, "")
        lengths = pc.binary_length(texts).to_numpy()
        yield lengths.data
        _, _, characters = texts.buffers()
        yield memoryview(characters or b"")[: int(lengths.sum())]
    else:
        numbers = values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
        yield pc.fill_null(numbers, 0).to_numpy().data


def content_digest(table: pa.Table) -> str:
    """Return a digest of names, types and values, independent of the layout in memory."""

    def parts() -> Iterator[Any]:
        for name, column in zip(table.column_names, table.columns, strict=True):
            yield name
            # One contiguous copy, so that the buffers contain only the column's values.
            chunks = [*column.chunks, pa.array([], column.type)]
            yield from _column_parts(pa.concat_arrays(chunks))

    return digest(parts())


def _seal(content: pa.Table, file_values: str) -> bytes:
    """Return a digest of the rows and of the values that all rows share."""
    rows = content_digest(content)
    return (digest([rows, file_values]) if file_values else rows).encode()


def write(
    frame: pd.DataFrame,
    path: FilePath,
    table: Table,
    *,
    values: Mapping[str, str] | None = None,
) -> None:
    """Write `frame` to the parquet file `path`, with a digest of the content.

    `values` contains a value for each of ``table.file_columns``. The metadata get its value of
    `PARAMETERS`, if there is one, and ``frame.attrs["sources"]``, the SHA-256 of each user's
    file behind the rows.
    """
    content = check(frame, table, path)
    file_values = ""
    if values:
        file_values = json.dumps({name: str(values[name]) for name in table.file_columns})
    marks = {"sha256": _seal(content, file_values), "about": file_values}
    if sources := frame.attrs.get("sources"):
        marks["sources"] = json.dumps(dict(sources))
    if values and PARAMETERS in values:
        marks[PARAMETERS] = values[PARAMETERS]
    with written_whole(path) as part:
        marked = content.replace_schema_metadata(marks)
        pq.write_table(marked, part, write_page_checksum=True)


def read(path: FilePath, table: Table) -> pd.DataFrame:
    """Return the rows of the parquet file `path`; raise TableError if it was changed."""
    return _read(path, table)[0]


def read_files(
    paths: FilePath | Sequence[FilePath], table: Table, *, placed: bool = False
) -> pd.DataFrame:
    """Read parquet or CSV files of a table into one frame that begins with the file columns.

    If paths are `placed`, a path names the model, checkpoint, dataset, … of the rows. A file
    with other rows raises a TableError.
    """
    frames, several = [], [paths] if isinstance(paths, str | os.PathLike) else paths
    for path in several:
        if str(path).endswith(".csv"):
            frames.append(read_csv(path, table))
            continue
        frame, file_values = _read(path, table)
        if missing := [name for name in table.file_columns if name not in file_values]:
            raise TableError(
                f"{path}: the file does not name its {missing[0]}, because an earlier version "
                f"wrote it; delete it, so that {table.rule} makes it again."
            )
        if frame.empty:
            log.warning("%s has no rows", path)
        frame = frame.assign(**file_values)[[*file_values, *table.schema.names]]
        if placed:
            _check_path(frame, file_values, path, table)
        frames.append(frame)
    columns = [*table.file_columns, *table.schema.names]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _check_path(
    frame: pd.DataFrame, file_values: Mapping[str, str], path: FilePath, table: Table
) -> None:
    """Raise a TableError if a file's rows contradict its path."""
    names = table.path_columns or tuple(file_values)
    parts = ENDING.sub("", str(path)).split("/")
    for name, part in zip(names[::-1], parts[::-1], strict=False):
        present = {file_values[name]} if name in file_values else set(frame[name])
        if part != SEVERAL and (wrong := present - {part}):
            raise TableError(
                f"{path}: it has {table.name} of {name} {min(wrong)!r}, not of {part!r}; "
                f"delete it, so that {table.rule} makes it again."
            )


def _read(path: FilePath, table: Table) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of a parquet file, and the values that they share."""
    try:
        content = pq.read_table(path, page_checksum_verification=True)
        marks = content.schema.metadata or {}
        file_values = marks.get(b"about", b"").decode()
        written = marks.get(b"sha256")
        whole = written is not None and _seal(content, file_values) == written
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TableError(f"{path}: not a readable parquet file ({error}).") from error
    if not whole:
        problem = "its content does not match its digest" if written else "it has no digest"
        raise TableError(
            f"{path}: the file is damaged or of another program: {problem}; delete it, so "
            f"that {table.rule} makes it again."
        )
    frame = check(content.replace_schema_metadata(None).to_pandas(), table, path).to_pandas()
    return frame, json.loads(file_values or "{}")


def sources(path: FilePath) -> dict[str, str]:
    """Return the SHA-256 of each user's file behind the table at `path`."""
    marks = pq.read_schema(path).metadata or {}
    return json.loads(marks.get(b"sources", b"{}"))


def _map_texts(content: pa.Table, change: Callable[[str], str]) -> pa.Table:
    """Change the texts of a table that can be a formula of a spreadsheet."""
    for position, name in enumerate(content.schema.names):
        column = content.column(name)
        if content.schema.types[position] == TYPES["text"]:
            if pc.any(pc.match_substring_regex(column, "^'*[-=+@\\t\\r]")).as_py():
                texts = [None if text is None else change(text) for text in column.to_pylist()]
                content = content.set_column(position, name, pa.array(texts, TYPES["text"]))
    return content


def write_csv(frame: pd.DataFrame, path: FilePath, table: Table) -> None:
    """Write `frame` to the CSV file `path`, see `csv_text`."""
    write_whole(path, csv_text(frame, table, path))


def csv_text(frame: pd.DataFrame, table: Table, path: FilePath = "") -> str:
    """Return `frame` as CSV; missing values are empty cells. Errors name `path`.

    People open these files in a spreadsheet, so no text is a formula there.
    """
    content = _map_texts(check(frame, table, path or table.name), escape_formula).to_pandas()
    whole = [f.name for f in table.schema if f.nullable and f.type == TYPES["int"]]
    # pandas turns int columns with missing values into float
    return content.astype(dict.fromkeys(whole, "Int64")).to_csv(index=False)


def read_csv(path: FilePath, table: Table) -> pd.DataFrame:
    """Return the rows of the CSV file `path`; raise TableError if they have another schema."""
    types = pyarrow.csv.ConvertOptions(column_types=table.schema, strings_can_be_null=False)
    try:
        content = pyarrow.csv.read_csv(path, convert_options=types)
        frame = _map_texts(content, unescape_formula).to_pandas()
    except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as error:
        raise TableError(
            f"{path}: not a readable CSV of {table.name} ({error}); save it with commas, in "
            "UTF-8, as it was."
        ) from error
    return check(frame, table, path).to_pandas()


class TableFiles(NamedTuple):
    """A table of results: name, CSV text and LaTeX text, which can be empty."""

    name: str
    csv: str
    tex: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Read the CSV file at `path` and the LaTeX file of the same name."""
        csv, tex = Path(path), Path(path).with_suffix(".tex")
        latex = tex.read_text(encoding="utf-8") if tex.exists() else ""
        return cls(csv.stem, csv.read_text(encoding="utf-8"), latex)

    def rows(self, missing: Any = None) -> pd.DataFrame:  # noqa: ANN401
        r"""Return the rows of the CSV; `missing` lists texts that pandas reads as NaN.

        Names stay text, even if they look like numbers.

        >>> print(TableFiles("sizes", "earlier,size\n0200,7", "").rows().to_string(index=False))
        earlier  size
           0200     7
        """
        text = dict.fromkeys(NAMES, str)
        csv = io.StringIO(self.csv)
        return pd.read_csv(csv, dtype=text, keep_default_na=False, na_values=missing)


def select_rows(table: pd.DataFrame, subject: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of a table with the values of `subject`."""
    return table[(table[list(subject)] == list(subject.values())).all(axis=1)]

"""Tables in files: one schema each, a digest, and CSV files for people."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from persistcal.store.files import (
    FilePath,
    digest,
    exists,
    is_edited,
    keep_digest,
    last_part,
    read_text,
    written_whole,
)

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

ENDING = re.compile(r"(\.shard\d+of\d+)?\.parquet$")

SEVERAL = "imported"  # names the file of several estimators


class TableError(ValueError):
    """A table does not have the shape that its rule promises."""


class Table(NamedTuple):
    """Name, schema and key of an artifact."""

    name: str  # plural noun; also the artifact's folder below the results
    rule: str  # that makes it; of several, the dataset's source decides which
    schema: pa.Schema  # a field that is not nullable holds no missing values
    key: tuple[str, ...]  # columns whose values identify a row
    about: tuple[str, ...] = ()  # what each file says of all its rows, such as their model
    place: tuple[str, ...] = ()  # what ends a file's path, if it is not `about`

    @classmethod
    def of(
        cls, name: str, rule: str, columns: str, *, about: str = "", place: str = ""
    ) -> "Table":
        """Return a table whose columns are described in a text.

        Each is a name, ``!`` for one of the key or ``?`` for one that may hold missing
        values, and one of `TYPES` after a colon unless it is text.

        >>> table = Table.of("labels", "judge", "id! n!:int label share?:real", about="model")
        >>> table.key, table.schema.types[1], table.schema.field("share").nullable
        (('id', 'n'), DataType(int64), True)
        """
        described = re.findall(r"(\w+)([!?]?):?(\w*)", columns)
        fields = [
            pa.field(column, TYPES[kind or "text"], nullable=mark == "?")
            for column, mark, kind in described
        ]
        key = tuple(column for column, mark, _ in described if mark == "!")
        return cls(
            name, rule, pa.schema(fields), key, tuple(about.split()), tuple(place.split())
        )

    def but(self, *names: str) -> list[str]:
        """Return the names of all columns but these."""
        return [name for name in self.schema.names if name not in names]

    def write(self, frame: pd.DataFrame, path: str, about: Mapping[str, Any]) -> None:
        """Write `frame`, as CSV or parquet; columns that it lacks are taken from `about`.

        ``frame.attrs["sources"]`` holds the SHA-256 of a user's files that it is made from.
        """
        columns, sources = [*self.about, *self.schema.names], frame.attrs.get("sources")
        frame = frame.assign(**{n: about[n] for n in columns if n in about and n not in frame})
        for name in self.about:
            if name in frame.columns and (frame[name].astype(str) != str(about[name])).any():
                raise TableError(
                    f"{path}: {self.rule} was to write rows of {name} {about[name]!r} and also "
                    f"has some of {frame[name].astype(str).unique().tolist()}."
                )
        frame = frame.drop(columns=[n for n in self.about if n not in self.schema.names])
        if str(path).endswith(".csv"):
            write_csv(frame, path, self)
        else:
            write(frame, path, self, about=about, sources=sources)


def check(frame: pd.DataFrame, table: Table, where: FilePath) -> pa.Table:
    """Return `frame` as an arrow table of the shape of `table`, or refuse it as of `where`."""

    def refuse(what: str) -> TableError:
        return TableError(f"{where}: {what} (table '{table.name}', made by {table.rule}).")

    names = table.schema.names
    if missing := [name for name in names if name not in frame.columns]:
        raise refuse(f"column {missing[0]!r} is missing; it needs {', '.join(names)}")
    if unknown := [name for name in frame.columns if name not in names]:
        raise refuse(f"unknown column {unknown[0]!r}; it may hold only {', '.join(names)}")
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
    """Return a `table` without rows."""
    return table.schema.empty_table().to_pandas()


def _column_parts(values: pa.Array) -> Iterator[Any]:
    """Yield type, length, missing values and values of a column, as bytes."""
    kind = "list" if pa.types.is_list(values.type) else values.type
    yield f"{kind} {len(values)}"
    yield values.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False).data
    if pa.types.is_list(values.type):
        yield pc.fill_null(pc.list_value_length(values), 0).to_numpy().data
        yield from _column_parts(values.flatten())
    elif pa.types.is_string(values.type):
        texts = pc.fill_null(values, "")
        lengths = pc.binary_length(texts).to_numpy()
        yield lengths.data
        _, _, characters = texts.buffers()
        yield memoryview(characters or b"")[: int(lengths.sum())]
    elif pa.types.is_boolean(values.type):
        yield pc.fill_null(values, False).cast(pa.uint8()).to_numpy().data
    else:
        yield pc.fill_null(values, 0).to_numpy().data


def _table_parts(table: pa.Table) -> Iterator[Any]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield name
        # One array of its own, whose buffers hold nothing but its values.
        yield from _column_parts(pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


def content_digest(table: pa.Table) -> str:
    """Return a digest of names, types and values, however they lie in memory."""
    return digest(_table_parts(table))


def _seal(content: pa.Table, about: str) -> bytes:
    """Return a digest of the rows and of what they are about."""
    rows = content_digest(content)
    return (digest([rows, about]) if about else rows).encode()


def write(
    frame: pd.DataFrame,
    path: FilePath,
    table: Table,
    *,
    about: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write `frame` to the parquet file `path`, with `table.about` of what it is `about`.

    `sources` holds the SHA-256 of a user's own files that it is made from.
    """
    content = check(frame, table, path)
    said = json.dumps({name: str(about[name]) for name in table.about}) if about else ""
    marks = {b"sha256": _seal(content, said), b"about": said.encode()}
    if sources:
        marks[b"sources"] = json.dumps(dict(sources)).encode()
    with written_whole(path) as part:
        marked = content.replace_schema_metadata(marks)
        pq.write_table(marked, part, write_page_checksum=True)


def read(path: FilePath, table: Table) -> pd.DataFrame:
    """Read the parquet file `path` and check that it is a `table`, as it was written."""
    return _read(path, table)[0]


def read_about(
    paths: FilePath | Sequence[FilePath], table: Table, *, placed: bool = False
) -> pd.DataFrame:
    """Read files of a `table` one below the other, with columns that say what each is about.

    With `placed`, a file is refused if its rows are not of the model, checkpoint, dataset, …
    that its path names.
    """
    frames, several = [], [paths] if isinstance(paths, str | os.PathLike) else paths
    for path in several:
        if str(path).endswith(".csv"):
            frames.append(read_csv(path, table))
            continue
        frame, about = _read(path, table)
        if missing := [name for name in table.about if name not in about]:
            raise TableError(
                f"{path}: the file does not say of which {missing[0]} it is, as an earlier "
                f"version wrote it; delete it, so that {table.rule} makes it again."
            )
        if frame.empty:
            log.warning("%s has no rows", path)
        frame = frame.assign(**about)[[*about, *table.schema.names]]
        if placed:
            _check_place(frame, about, path, table)
        frames.append(frame)
    columns = [*table.about, *table.schema.names]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _check_place(
    frame: pd.DataFrame, about: Mapping[str, str], path: FilePath, table: Table
) -> None:
    """Refuse a file whose rows are of something else than its path names."""
    names = table.place or tuple(about)
    parts = ENDING.sub("", str(path)).split("/")
    for name, named in zip(names[::-1], parts[::-1], strict=False):
        found = {about[name]} if name in about else set(frame[name])
        if named != SEVERAL and (other := found - {named}):
            raise TableError(
                f"{path}: it has {table.name} of {name} {min(other)!r}, not of {named!r}; "
                f"delete it, so that {table.rule} makes it again."
            )


def _read(path: FilePath, table: Table) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of a parquet file, and what they are about."""
    try:
        content = pq.read_table(path, page_checksum_verification=True)
        marks = content.schema.metadata or {}
        said = marks.get(b"about", b"").decode()
        written = marks.get(b"sha256")
        whole = written is not None and _seal(content, said) == written
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TableError(f"{path}: not a readable parquet file ({error}).") from error
    if not whole:
        what = "its content is not what was written" if written else "it has lost its digest"
        raise TableError(
            f"{path}: the file is damaged or of another program, as {what}; delete it, so that "
            f"{table.rule} makes it again."
        )
    frame = check(content.replace_schema_metadata(None).to_pandas(), table, path).to_pandas()
    return frame, json.loads(said or "{}")


def sources(path: FilePath) -> dict[str, str]:
    """Return the SHA-256 of each user's file that the table at `path` was made from."""
    marks = pq.read_schema(path).metadata or {}
    return json.loads(marks.get(b"sources", b"{}"))


def write_csv(frame: pd.DataFrame, path: FilePath, table: Table) -> None:
    """Write `frame` to the CSV file `path`, whole or not at all; missing values are empty."""
    content = check(frame, table, path).to_pandas()
    whole = [f.name for f in table.schema if f.nullable and f.type == TYPES["int"]]
    with written_whole(path) as part:  # which pandas makes fractions where one is missing
        content.astype(dict.fromkeys(whole, "Int64")).to_csv(part, index=False)
    keep_digest(path)


def read_csv(path: FilePath, table: Table) -> pd.DataFrame:
    """Read the CSV file `path` and check that it is a `table`, as it was written."""
    if is_edited(path):
        raise TableError(
            f"{path}: the file has changed since it was written; delete it, so that "
            f"{table.rule} makes it again."
        )
    types = pyarrow.csv.ConvertOptions(column_types=table.schema, strings_can_be_null=False)
    try:
        frame = pyarrow.csv.read_csv(path, convert_options=types).to_pandas()
    except (OSError, pa.ArrowInvalid) as error:
        raise TableError(f"{path}: not a readable CSV of {table.name} ({error}).") from error
    return check(frame, table, path).to_pandas()


NAMES = [
    *("model", "other_model", "dataset", "train_dataset", "checkpoint", "earlier", "later"),
    *("estimator", "recipe", "trained_on"),
]


def read_cells(path: str) -> pd.DataFrame | None:
    """Read a CSV file that people edit, all cells as text; None when there is no file."""
    if not exists(path):
        return None
    return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")


class TableFiles(NamedTuple):
    """A table as people read it: the name of its files, and their text (LaTeX or none)."""

    name: str
    csv: str
    tex: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Read the CSV at `path`, and the LaTeX beside it."""
        stem = path.removesuffix(".csv")
        tex = read_text(f"{stem}.tex") if exists(f"{stem}.tex") else ""
        return cls(last_part(stem), read_text(path), tex)

    def rows(self, missing: Any = None) -> pd.DataFrame:  # noqa: ANN401
        r"""Return the rows of the CSV, where `missing` texts (of pandas) are no value.

        Names are text, also those that look like numbers.

        >>> print(TableFiles("sizes", "earlier,size\n0200,7", "").rows().to_string(index=False))
        earlier  size
           0200     7
        """
        text = dict.fromkeys(NAMES, str)
        csv = io.StringIO(self.csv)
        return pd.read_csv(csv, dtype=text, keep_default_na=False, na_values=missing)

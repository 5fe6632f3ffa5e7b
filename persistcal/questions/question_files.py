"""The rows of a question file, as they stand there: no text becomes a number or moves."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from persistcal.store.csv_text import decode, delimiter_of

MOST_UNZIPPED = 2**31  # bytes: a file of some megabytes may hold a thousand times as many


def read_rows(
    content: bytes, kind: str, *, known: Collection[str], lists: Collection[str] = ()
) -> pd.DataFrame:
    """Return the rows of a file, numbers in CSV and JSON as the text that they are there.

    Parameters
    ----------
    content : bytes
        The file, as it is or compressed with gzip.
    kind : str
        Ending of its name: ``.csv``, ``.jsonl`` or ``.parquet``.
    known : collection of str
        Names that columns may have, by which a CSV file's delimiter is known.
    lists : collection of str, optional
        Columns in which a CSV field that begins with ``[`` is a JSON list.

    Raises
    ------
    ValueError
        When the file cannot be read with certainty. The message names the line.
    """
    if content.startswith(b"\x1f\x8b"):
        content = _unzipped(content)
    if kind == ".parquet":
        return _parquet(content)
    if kind == ".csv":
        return _csv(decode(content), known, lists)
    if kind == ".jsonl":
        return pd.DataFrame(_json_lines(decode(content)), dtype=object)
    raise ValueError(f"files of kind {kind!r} are not read; give .jsonl, .csv or .parquet")


def _unzipped(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            size = 0  # measured before it is kept
            while part := file.read(2**20):
                if (size := size + len(part)) > MOST_UNZIPPED:
                    raise ValueError(
                        f"unpacks to more than {MOST_UNZIPPED:,} bytes; split it, or give it "
                        "unpacked"
                    )
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"is not a whole gzip file ({error}); compress it again") from error


def _parquet(content: bytes) -> pd.DataFrame:
    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"is not a whole parquet file ({error}); write it again") from error
    # Not by way of arrays, which turn whole numbers beside a missing one into fractions.
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return pd.DataFrame(rows, columns=table.column_names, dtype=object)


def _csv(text: str, known: Collection[str], lists: Collection[str]) -> pd.DataFrame:
    rows = _csv_lines(text, delimiter_of(text, known))
    _, names = next(rows, (0, []))
    fields: list[list[object]] = []
    for line, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"line {line} has {len(row)} fields, but the heading has {len(names)}; put a "
                "text that holds the delimiter in double quotes"
            )
        fields.append(
            [
                _json_list(field, name, line) if name in lists else field
                for name, field in zip(names, row, strict=True)
            ]
        )
    return pd.DataFrame(fields, columns=names, dtype=object)


def _json_list(field: str, name: str, line: int) -> object:
    """Return the list that a field holds, or the field as it is where it begins with none."""
    if not field.lstrip().startswith("["):
        return field
    try:
        return json.loads(field, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError as error:
        raise ValueError(
            f"column {name!r} of line {line} begins like a list but is no JSON list ({error}); "
            'write ["a", "b"]'
        ) from error


def _csv_lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of `text` that are not blank, each with the line that it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {line} is not CSV ({error}); correct it") from error


def _json_lines(text: str) -> Iterator[dict[str, object]]:
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(
                line,
                object_pairs_hook=_object,
                parse_int=str,
                parse_float=str,
                parse_constant=lambda name: None if name == "NaN" else name,
            )
        except (ValueError, RecursionError) as error:
            last = (
                ", or write the file again: it may be cut off" if number == len(lines) else ""
            )
            raise ValueError(
                f"line {number} is not JSON ({error}); correct it{last}"
            ) from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is not a JSON object; write {{…}} in each line")
        yield row


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a key is there twice")
    return named

"""CSV files to which jobs append rows: one may be cut short, and people edit them."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from persistcal.store.files import FilePath, append_lines, exists, read_bytes

LONGEST_FIELD = 2**31 - 1  # the library's own limit is 128 KiB


def append_rows(path: FilePath, rows: Iterable[Sequence[Any]], *, delimiter: str = ",") -> None:
    """Append `rows` as `append_lines` does; line breaks inside a field become spaces."""
    text = io.StringIO(newline="")
    flat = ([_in_one_line(field) for field in row] for row in rows)
    csv.writer(text, delimiter=delimiter).writerows(flat)
    append_lines(path, text.getvalue().encode("utf-8"))


def _in_one_line(field: object) -> object:
    return " ".join(field.splitlines()) if isinstance(field, str) else field


def read_lines(path: FilePath) -> list[str]:
    """Return the lines of the file at `path`, with their ends; none when there is no file.

    What is no UTF-8 is refused, but for a character that was cut at the end of a line.
    """
    content = read_bytes(path) if exists(path) else b""
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    return [_decoded(line) for line in lines]


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" and line[error.end :].strip():
            raise
        return line.decode("utf-8", errors="replace")


def parse_rows(
    lines: Sequence[str], *, delimiter: str = ",", columns: int
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the number of the first line and the fields of each row of at most `columns`.

    None stands for a line of no row. One that is a whole row by itself is one, whatever
    precedes it: a quote opened in a line that was cut short swallows no later row.
    """
    i = 0
    while i < len(lines):
        fields, n = _row_at(lines, i, delimiter)
        swallows = any(
            len(_row_at([line], 0, delimiter)[0] or ()) == columns
            for line in lines[i + 1 : i + n]
        )
        if fields is None or len(fields) > columns or swallows:
            fields, n = None, 1
        if fields != []:
            yield i + 1, fields
        i += n


def _row_at(lines: Sequence[str], i: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the row that begins at line `i`, if one does, and its number of lines."""
    before = csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(
        (lines[j] for j in range(i, len(lines))), delimiter=delimiter, strict=True
    )
    try:
        fields = next(reader, [])
    except csv.Error:
        return None, 1
    finally:
        csv.field_size_limit(before)
    return fields, max(reader.line_num, 1)

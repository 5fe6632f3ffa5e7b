"""Sheets that a person fills in, as CSV files: the judge's queue, the audit's, the threshold's.

A sheet with entries is never replaced. People edit sheets in spreadsheets, which change the
delimiter, the encoding, the order of columns, and numbers. Rules import this module when the
Snakefile is parsed, so it needs no other package.
"""

import csv
import io
import logging
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from persistcal.store.files import digest, write_whole
from persistcal.store.replies import append_rows, decode_lines, parse_rows

log = logging.getLogger(__name__)

DRAWN_FROM = "drawn_from"  # column with the digest of the answers that were drawn
ZIP = b"PK\x03\x04"  # first bytes of Excel's own files
LONGEST_CELL = 5_000  # characters; spreadsheets take 32,767
LONGEST_SHOWN = 80  # characters of a value in a message
REDRAW = (
    "draw the sheet again into another folder, import this column as text, and copy the entries"
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins with one can be a formula
# Entries as people write them, and as spreadsheets write truth values
MARKS = {
    **dict.fromkeys(["yes", "y", "true", "1", "wahr", "vrai", "verdadero", "vero"], 1),
    **dict.fromkeys(["ja", "oui", "si", "sí", "sì"], 1),
    **dict.fromkeys(["no", "n", "false", "0", "falsch", "faux", "falso", "nein", "non"], 0),
}


class SheetError(ValueError):
    """A sheet cannot be read or written; the message names the file and the row."""


class SheetRow(NamedTuple):
    """The number of a row in a spreadsheet, from 1 for the heading, and the cells."""

    number: int
    cells: dict[str, str]
    is_short: bool = False  # whether cells were missing at the end, as in a line that was cut


class Sheet(NamedTuple):
    """A sheet as it is read, with the delimiter and the encoding for more rows.

    `columns` is empty for a file that is missing, empty, or cut in its heading. `damaged` are
    the numbers of rows that cannot be read.
    """

    path: str
    columns: list[str]
    rows: list[SheetRow]
    damaged: list[int]
    delimiter: str = ","
    encoding: str = "utf-8"

    def refuse(self, row: SheetRow | int, problem: str) -> SheetError:
        """Return an error about a row, for the caller to raise."""
        number = row if isinstance(row, int) else row.number
        return SheetError(f"{self.path}: row {number} {problem}")

    def has_entries(self, names: Collection[str]) -> bool:
        """Return whether a person has written into a column that is not `names`."""
        if self.columns and not set(names) <= set(self.columns):
            return True  # not as drawn, so someone's work
        added = [name for name in self.columns if name not in names]
        return bool(self.damaged) or any(
            row.cells[name].strip() for row in self.rows for name in added
        )


def escape_formula(text: str) -> str:
    """Keep a text from being taken for a formula; `unescape_formula` is the inverse.

    >>> escape_formula("=1+1"), escape_formula("1+1"), unescape_formula("'=1+1")
    ("'=1+1", '1+1', '=1+1')
    """
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def unescape_formula(text: str) -> str:
    """Return the text behind a cell of `escape_formula`."""
    is_escaped = text.startswith("'") and text.lstrip("'").startswith(FORMULA)
    return text[1:] if is_escaped else text


def cut(value: object) -> str:
    """Return a value for a message, of at most `LONGEST_SHOWN` characters."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def as_cell(text: str) -> str:
    """Shorten `text` to a cell of a spreadsheet, and keep it from being taken for a formula."""
    return escape_formula(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]} …")


def _decode(content: bytes, path: str) -> tuple[list[str], str]:
    """Return the lines of a file, and its encoding without the byte order mark."""
    for mark, encoding in ((BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be")):
        if content.startswith(mark):
            text = content.removeprefix(mark).decode(encoding, errors="replace")
            return list(io.StringIO(text, newline="")), encoding
    try:
        if b"\0" not in content[:2] and not content.startswith(ZIP):
            return decode_lines(content), "utf-8"
    except UnicodeDecodeError:
        pass
    raise SheetError(f"{path} is not UTF-8 text; save it as CSV in UTF-8.")


def _heading(line: str, needed: Collection[str]) -> tuple[str, list[str]]:
    """Return the delimiter and the columns in `line`; no columns if it is not the heading."""
    delimiter = max(",;\t", key=line.count)
    rows = parse_rows([line], delimiter=delimiter, columns=len(line))
    columns = next((fields for _, fields in rows if fields), [])
    columns = [name.strip() for name in columns]
    return delimiter, columns if set(needed) <= set(columns) else []


def read_sheet(path: str, needed: Sequence[str], heading: Sequence[str] = ()) -> Sheet:
    """Read a sheet that has the `needed` columns, in any order and among others.

    `heading` has all columns of the sheet as drawn; a file that was cut in this line is empty.
    Cells are texts. Rows without any text are left out.
    """
    lines, encoding = _decode(Path(path).read_bytes() if Path(path).exists() else b"", path)
    above = next((i for i, line in enumerate(lines) if _heading(line, needed)[1]), None)
    if above is None:
        if ",".join(heading).startswith("".join(lines).strip()):
            return Sheet(path, [], [], [])
        raise SheetError(
            f"{path}: the first line must name the columns {', '.join(heading or needed)}; "
            "restore that line or move the file away."
        )
    delimiter, columns = _heading(lines[above], needed)
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise SheetError(f"{path}: the column {twice[0]!r} is there twice; keep one.")
    rows, damaged = [], []
    parsed = parse_rows(
        lines[above + 1 :], delimiter=delimiter, columns=len(columns), blank=True
    )
    for number, (_, fields) in enumerate(parsed, start=above + 2):
        cells = dict.fromkeys(columns, "") | dict(zip(columns, fields or [], strict=False))
        if fields is None:
            damaged.append(number)
        elif any(map(str.strip, fields)):
            rows.append(SheetRow(number, cells, len(fields) < len(columns)))
    return Sheet(path, columns, rows, damaged, delimiter, encoding)


def read_drawn(path: str, drawn: Sequence[str]) -> Sheet:
    """Read a sheet with all columns that it was `drawn` with; refuse a damaged one."""
    sheet = read_sheet(path, drawn)
    for number in sheet.damaged:
        raise sheet.refuse(number, "is no row of the heading's columns; correct or remove it.")
    return sheet


def write_sheet(columns: Sequence[str], rows: Iterable[Mapping[Any, object]]) -> bytes:
    """Return a new sheet as CSV: cells without formulas, in UTF-8 as spreadsheets expect."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(_cells(columns, row) for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _cells(columns: Sequence[str], row: Mapping[Any, object]) -> list[str]:
    """Return the cells of a row, each in one line."""
    return [_cell(row.get(name)) for name in columns]


def _cell(value: object) -> str:
    return as_cell(" ".join(_text(value).splitlines()))


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value)


def append_to_sheet(sheet: Sheet, rows: Iterable[Mapping[Any, object]]) -> None:
    """Append rows in the columns of a sheet; existing entries are kept."""
    cells = [_cells(sheet.columns, row) for row in rows]
    if sheet.encoding == "utf-8":
        append_rows(sheet.path, cells, delimiter=sheet.delimiter)
        return
    content, text = Path(sheet.path).read_bytes(), io.StringIO(newline="")
    end = "\n".encode(sheet.encoding)
    text.write("" if content.endswith(end) else "\r\n")
    csv.writer(text, delimiter=sheet.delimiter).writerows(cells)
    write_whole(sheet.path, content + text.getvalue().encode(sheet.encoding))


def check_unfilled(path: str, names: Sequence[str], remedy: str) -> None:
    """Refuse to replace a file with entries, or a file that is not a sheet of this kind."""
    if not Path(path).exists():
        return
    try:
        has_entries = read_sheet(path, names, names).has_entries(names)
    except SheetError:
        has_entries = True
    if has_entries:
        raise SheetError(f"{path}: someone has written into it, so it is kept; {remedy}.")


def digest_of(*parts: object) -> str:
    """Return a digest of the data of a sheet; no spreadsheet takes it for a number."""
    return f"sheet-{digest([repr(part) for part in parts])[:16]}"


def check_source(sheet: Sheet, source: str, remedy: str) -> None:
    """Refuse a sheet that was drawn from other data than those with the digest `source`."""
    for row in sheet.rows:
        if row.cells[DRAWN_FROM].strip() != source:
            raise sheet.refuse(row, f"was drawn from other data; {remedy}.")


def check_shown(
    sheet: Sheet, row: SheetRow, column: str, current: object, remedy: str = "draw a new sheet"
) -> None:
    """Refuse a row with another text than the `current` one, or another number."""
    cell, text = row.cells[column], _text(current)
    is_same_number = _number(text) is not None and _number(cell) == _number(text)
    if not is_same_number and cell.split() not in (text.split(), _cell(text).split()):
        raise sheet.refuse(
            row, f"has the {column} {cut(cell)}, and now it is {cut(text)}; {remedy}."
        )


def read_mark(sheet: Sheet, row: SheetRow, column: str) -> int | None:
    """Return 1 for yes, 0 for no, and None for an empty cell, in a person's spelling."""
    entry = row.cells[column].strip().lower()
    if not entry:
        return None
    plain = entry.replace(",", ".")
    if plain.count(".") == 1 and set(plain.partition(".")[2]) <= {"0"}:  # as 1.0 and 0,00
        entry = plain.partition(".")[0]
    if entry not in MARKS:
        raise sheet.refuse(
            row,
            f"has {row.cells[column]!r} in the column {column!r}; write yes or no, 1 or 0, or "
            "leave it empty.",
        )
    return MARKS[entry]


def find_rows(sheet: Sheet, column: str, known_names: Collection[str]) -> dict[str, SheetRow]:
    """Return the rows by the id in a column; refuse repeated and unknown ids."""
    if not sheet.rows:
        raise SheetError(f"{sheet.path}: is empty; move it away and draw it again.")
    rows: dict[str, SheetRow] = {}
    as_written = {_cell(name).strip(): name for name in known_names}
    for row in sheet.rows:
        cell = row.cells[column].strip()
        name = as_written.get(cell, unescape_formula(cell))
        if name not in known_names:
            raise sheet.refuse(
                row, f"has the {column} {name!r}, {_why_unknown(name, known_names)}."
            )
        if name in rows:
            raise sheet.refuse(
                row, f"repeats the {column} {name!r} of row {rows[name].number}; keep one."
            )
        rows[name] = row
    return rows


def _why_unknown(name: str, known_names: Collection[str]) -> str:
    """Return why an id is not known: a spreadsheet has changed it, or it is another's."""
    value = _number(name)
    same = next(
        (text for text in known_names if value is not None and _number(text) == value), None
    )
    if same is not None:
        return f"which a spreadsheet has made of {same!r}; {REDRAW}"
    return (
        "which is not among the questions; give the sheet that was drawn from these files, or "
        f"if a spreadsheet has changed it, {REDRAW}"
    )


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def filled_prefix(sheet: Sheet, entries: Iterable[tuple[SheetRow, object]]) -> int:
    """Return how many rows at the beginning have an entry; refuse gaps before an entry.

    `entries` are rows in random order, each with the entry or None. Only
    a prefix of a random order is a random sample.
    """
    filled, gap = 0, None
    for row, entry in entries:
        if entry is None:
            gap = gap or row
        elif gap:
            raise sheet.refuse(
                gap,
                f"has no entry and row {row.number} has one; answers that a person chooses are "
                "no random sample: fill in the sheet from the top, without gaps.",
            )
        else:
            filled += 1
    return filled

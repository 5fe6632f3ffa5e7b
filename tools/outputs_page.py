"""Write docs/outputs.md, the columns of every table, from the schemas and their meanings.

`make outputs` runs it; a test compares the page with it.
"""

import re
from collections import Counter
from pathlib import Path

import yaml

from persistcal.store import artifacts
from persistcal.store.tables import TYPES, Table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "outputs.md"
MEANINGS = ROOT / "persistcal" / "store" / "columns.yaml"
KINDS = {kind: name for name, kind in TYPES.items()}
HEAD = ["| column | type | meaning |", "|---|---|---|"]
INTRODUCTION = """\
# Columns of all tables

Every table that the workflow and `persistcal compare` write, as CSV or parquet. A file is in
the results folder, or in a folder with the table's name. Types are text, whole numbers (int),
numbers (real), true or false (flag), and lists of these. **Bold** columns identify a row, and
columns with **?** can be missing. A parquet file about one model, checkpoint or dataset has its
names in the metadata. `tables/*.csv` contains the numbers of the table of the same name, in its
layout. [Concepts](concepts.md) explains the metrics.

`make outputs` makes this page from `persistcal/store/artifacts.py` and
`persistcal/store/columns.yaml`.
"""

Meanings = dict[str, str]
Row = tuple[str, str, str]  # column, type, meaning


def all_tables() -> list[Table]:
    """Return every table by name."""
    tables = {t.name: t for t in vars(artifacts).values() if isinstance(t, Table)}
    return [tables[name] for name in sorted(tables)]


def rows_of(table: Table, meanings: Meanings) -> list[Row]:
    """Return name, type and meaning of each column; refuse a column without a meaning."""
    kinds = dict.fromkeys(table.file_columns, "text")
    kinds |= {field.name: KINDS[field.type] for field in table.schema}
    rows = []
    for name, kind in kinds.items():
        meaning = meanings.get(f"{table.name}.{name}", meanings.get(name))
        if meaning is None:
            raise KeyError(
                f"column {name!r} of table {table.name!r} has no meaning; add it to "
                f"{MEANINGS.relative_to(ROOT)} and run `make outputs`"
            )
        rows.append((name, kind, meaning))
    return rows


def shared_rows(tables: list[Table], meanings: Meanings) -> list[Row]:
    """Return the columns with one meaning in several tables, by name."""
    counts = Counter(row for table in tables for row in rows_of(table, meanings))
    return sorted(row for row, n in counts.items() if n > 1 and row[2] == meanings.get(row[0]))


def lines_of(table: Table, meanings: Meanings, shared: list[Row]) -> list[str]:
    """Return the section about a table, with the meanings that other tables do not share."""
    marks = {name: f"**`{name}`**" for name in table.key}
    names = [
        marks.get(field.name, f"`{field.name}`") + "?" * field.nullable
        for field in table.schema
    ]
    rules = re.sub(r"\b(?!or\b)(\w+)", r"`\1`", table.rule)
    columns = ", ".join(f"`{name}`" for name in table.file_columns)
    lines = [
        f"## `{table.name}`",
        "",
        f"From {rules}." + f" Metadata: {columns}." * bool(columns),
    ]
    lines += [f"Columns: {', '.join(names)}.", ""]
    own_rows = [row for row in rows_of(table, meanings) if row not in shared]
    return [*lines, *as_table(own_rows)] if own_rows else lines


def as_table(rows: list[Row]) -> list[str]:
    """Return a Markdown table of columns."""
    return [*HEAD, *(f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in rows), ""]


def page() -> str:
    """Return the whole page."""
    meanings = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    tables = all_tables()
    shared = shared_rows(tables, meanings)
    lines = [line for table in tables for line in lines_of(table, meanings, shared)]
    return "\n".join([INTRODUCTION, "## Shared columns", "", *as_table(shared), *lines])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

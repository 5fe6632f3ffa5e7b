"""Write docs/outputs.md, the columns of every table, from the schemas.

`make outputs` runs it; a test compares the page with it.
"""

import re
from collections import Counter
from pathlib import Path

from persistcal.store import artifacts
from persistcal.store.tables import TYPES, Table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "outputs.md"
KINDS = {kind: name for name, kind in TYPES.items()}
INTRODUCTION = """\
# Columns of all tables

The tables that the workflow and `persistcal compare` write, as CSV or parquet, in the
results folder or in a folder with the table's name. Each section names the rule or command
that writes the table, its columns among the shared ones, and its own columns. **Bold**
columns identify a row, and values of columns with **?** can be missing. Types are text,
whole numbers (int), numbers (real), true or false (flag), and lists of these. Confidences,
probabilities and shares are in [0, 1]; entropies, divergences, losses and log-probabilities
are in nats. A parquet file about one model, checkpoint or dataset has its names in the
metadata, and each has a digest of its rows (`sha256`) and of the parameters of its job
(`parameters_sha256`). `tables/*.csv` has the numbers and the layout of the table of the same
name. [Concepts](concepts.md) explains the metrics. `make outputs` makes this page.
"""

Row = tuple[str, str, str]  # column, type, meaning


def all_tables() -> list[Table]:
    """Return every table by name."""
    tables = {t.name: t for t in vars(artifacts).values() if isinstance(t, Table)}
    return [tables[name] for name in sorted(tables)]


def rows_of(table: Table) -> list[Row]:
    """Return name, type and meaning of each column; refuse a column without a meaning."""
    meanings = artifacts.SHARED | dict(table.meanings)
    kinds = dict.fromkeys(table.file_columns, "text")
    kinds |= {field.name: KINDS[field.type] for field in table.schema}
    rows = []
    for name, kind in kinds.items():
        if name not in meanings:
            raise KeyError(
                f"column {name!r} of table {table.name!r} has no meaning; add it in "
                "persistcal/store/artifacts.py and run `make outputs`"
            )
        rows.append((name, kind, meanings[name]))
    return rows


def shared_rows(tables: list[Table]) -> list[Row]:
    """Return the columns with one meaning in several tables, by name."""
    counts = Counter(row for table in tables for row in rows_of(table))
    return sorted(
        row for row, n in counts.items() if n > 1 and row[2] == artifacts.SHARED.get(row[0])
    )


def lines_of(table: Table, shared: list[Row]) -> list[str]:
    """Return the section about a table: names of shared columns, then its own columns."""
    marks = dict.fromkeys(table.file_columns, "`{}`")
    for field in table.schema:
        name = "**`{}`**" if field.name in table.key else "`{}`"
        marks[field.name] = name + "?" * field.nullable
    rows = rows_of(table)
    parts = re.split(r"(, | or )", table.rule)
    rules = "".join(f"`{part}`" if i % 2 == 0 else part for i, part in enumerate(parts))
    names = {
        "Shared": [row[0] for row in rows if row in shared and row[0] in table.schema.names],
        "Metadata": table.file_columns,
    }
    lists = [
        f" {kind}: {', '.join(marks[name].format(name) for name in listed)}."
        for kind, listed in names.items()
        if listed
    ]
    own_rows = [(marks[row[0]].format(row[0]), *row[1:]) for row in rows if row not in shared]
    return [f"## `{table.name}`", "", f"From {rules}.{''.join(lists)}", "", *as_list(own_rows)]


def as_list(rows: list[Row]) -> list[str]:
    """Return a Markdown list of columns; columns with the same meaning share a line."""
    lines = []
    for meaning in dict.fromkeys(meaning for _, _, meaning in rows):
        names = dict.fromkeys(row[0] for row in rows if row[2] == meaning)
        kinds = dict.fromkeys(row[1] for row in rows if row[2] == meaning)
        lines.append(f"- {', '.join(names)} ({' or '.join(kinds)}): {meaning}")
    return [*lines, ""] if lines else []


def page() -> str:
    """Return the whole page."""
    tables = all_tables()
    shared = shared_rows(tables)
    lines = [line for table in tables for line in lines_of(table, shared)]
    return "\n".join(
        [
            INTRODUCTION,
            "## Shared columns",
            "",
            *as_list([(f"`{row[0]}`", *row[1:]) for row in shared]),
            *lines,
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Write docs/outputs.md, the columns of every table, from the schemas and their meanings.

`make outputs` runs it; a test compares the page with it.
"""

from pathlib import Path

import yaml

from persistcal.store import artifacts
from persistcal.store.tables import TYPES, Table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "outputs.md"
MEANINGS = ROOT / "persistcal" / "store" / "columns.yaml"
INTRODUCTION = """\
# Columns of all tables

Every table that the workflow and `persistcal compare` write, as CSV or parquet. A file is in
the results' folder, or in a folder with the table's name. Types are texts, whole numbers (int),
numbers (real), true or false (flag), and lists of these; **?** can be missing. The columns of
the key identify a row. A parquet file that is about one model, dataset or checkpoint has these
names in its metadata instead of columns. `tables/*.csv` has the same numbers, laid out as the
table of the same name.

`make outputs` makes this page from `persistcal/store/artifacts.py` and
`persistcal/store/columns.yaml`.
"""


def all_tables() -> list[Table]:
    """Return every table by name."""
    tables = {t.name: t for t in vars(artifacts).values() if isinstance(t, Table)}
    return [tables[name] for name in sorted(tables)]


def lines_of(table: Table, meanings: dict[str, str]) -> list[str]:
    """Return the part of the page about a table; a column without a meaning is refused."""
    kinds = {kind: name for name, kind in TYPES.items()}
    lines = [f"## `{table.name}`", "", f"Made by {table.rule}.", ""]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    described = [(name, "text", "of the file") for name in table.about]
    for field in table.schema:
        mark = "?" if field.nullable else ""
        key = "key" if field.name in table.key else ""
        described.append((field.name, f"{kinds[field.type]}{mark}", key))
    for name, kind, note in described:
        meaning = meanings.get(f"{table.name}.{name}", meanings.get(name))
        if meaning is None:
            raise KeyError(
                f"column {name!r} of table {table.name!r} has no meaning; add it to "
                f"{MEANINGS.relative_to(ROOT)} and run `make outputs`"
            )
        lines.append(f"| `{name}` | {kind}{f', {note}' if note else ''} | {meaning} |")
    return [*lines, ""]


def page() -> str:
    """Return the whole page."""
    meanings = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    lines = [line for table in all_tables() for line in lines_of(table, meanings)]
    return "\n".join([INTRODUCTION, *lines])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

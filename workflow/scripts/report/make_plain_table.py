"""Make a table that compares no estimators, as LaTeX and as CSV."""

from collections.abc import Mapping
from typing import Any

from persistcal.report import tables
from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def make_plain_table(rows: list[str], *, table: Mapping[str, Any]) -> tuple[str, str]:
    """Return LaTeX and CSV from the `function` of `table` for its `artifact` and `settings`."""
    frame = artifacts.read_files(rows, getattr(artifacts, table["artifact"]), placed=True)
    try:
        made = getattr(tables, table["function"])(frame, **table["settings"])
    except ValueError as error:
        raise ValueError(f"{rows[0]}: {error}.") from error
    log.info("%d rows", len(made.rows))
    return made.tex, made.rows.to_csv(index=False)


if __name__ == "__main__":
    run(make_plain_table, snakemake)

"""Make a table that compares no estimators, as LaTeX and as CSV."""

from importlib import import_module
from typing import Any

from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def make_plain_table(rows: list[str], *, table: dict[str, Any]) -> tuple[str, str]:
    """Return LaTeX and CSV of a table of the catalogue from rows of its artifact."""
    schema = getattr(artifacts, table["artifact"].upper())
    frame = artifacts.read_files(rows, schema, placed=True)
    module, name = table["function"].rsplit(".", 1)
    function = getattr(import_module(module), name)
    try:
        made = function(frame, **table["settings"])
    except ValueError as error:
        raise ValueError(f"{rows[0]}: {error}.") from error
    log.info("%d rows", len(made.rows))
    return made.tex, made.rows.to_csv(index=False)


if __name__ == "__main__":
    run(make_plain_table, snakemake)

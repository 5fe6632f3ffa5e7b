"""Write a table that compares no estimators as LaTeX and as CSV."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.report import plain_tables
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def make_plain_table(
    rows_paths: Sequence[str],
    tex_path: str,
    csv_path: str,
    *,
    table: Mapping[str, Any],
) -> None:
    """Write what a function of `persistcal.report.plain_tables` makes of rows.

    Parameters
    ----------
    rows_paths : sequence of str
        Files of the same table, parquet or CSV.
    table : mapping
        The name of its `function`, of the `artifact` that it
        reads, and as `settings` its other arguments.
    """
    schema = getattr(artifacts, table["artifact"])
    rows = pd.concat(
        (artifacts.read_csv if path.endswith(".csv") else artifacts.read)(path, schema)
        for path in rows_paths
    )
    try:
        printed = getattr(plain_tables, table["function"])(rows, **table["settings"])
    except ValueError as error:
        raise ValueError(f"{rows_paths[0]}: {error}.") from error
    Path(tex_path).write_text(printed.tex, encoding="utf-8")
    printed.rows.to_csv(csv_path, index=False)
    log.info("Wrote %s: %d rows", tex_path, len(printed.rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_plain_table(
        list(snakemake.input),
        snakemake.output.tex,
        snakemake.output.csv,
        table=snakemake.params.table,
    )

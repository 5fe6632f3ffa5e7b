"""Write one table of results as LaTeX and as CSV."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.report.cells import fill_cells
from persistcal.report.grid import lay_out
from persistcal.report.latex import results_table
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def make_table(
    metrics_paths: Sequence[str],
    significance_path: str,
    tex_path: str,
    csv_path: str,
    *,
    name: str,
    table: Mapping[str, Any],
    models: Sequence[str],
    datasets: Mapping[str, Sequence[str]],
    labels: Mapping[str, Mapping[str, str]],
    missing_ok: bool = False,
) -> None:
    """Write the table `name` to `tex_path`, and its cells to `csv_path`."""
    metrics = pd.concat(artifacts.read(path, artifacts.METRICS) for path in metrics_paths)
    significance = artifacts.read(significance_path, artifacts.SIGNIFICANCE)
    try:
        cells = fill_cells(
            metrics,
            significance,
            table,
            models=models,
            datasets=datasets,
            missing_ok=missing_ok,
        )
    except ValueError as error:
        raise ValueError(f"{tex_path}: {error}") from error

    Path(tex_path).write_text(
        results_table(
            lay_out(cells, table, labels=labels),
            caption=table["caption"],
            label=name.replace("_", "-"),
        ),
        encoding="utf-8",
    )
    cells.insert(0, "table", name)
    # Adding zero turns a rounded -0.0 into 0.0.
    cells.assign(value=cells["value"].round(3) + 0.0).to_csv(
        csv_path, index=False, float_format="%.3f"
    )
    empty = cells.loc[cells["value"].isna(), ["model", "dataset", "estimator"]]
    for cell in empty.drop_duplicates().itertuples(index=False):
        log.warning("%s: not every metric has a value for %s", name, ", ".join(cell))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_table(
        snakemake.input.metrics,
        snakemake.input.significance,
        snakemake.output.tex,
        snakemake.output.csv,
        name=snakemake.wildcards.table,
        table=snakemake.params.table,
        models=snakemake.params.models,
        datasets=snakemake.params.datasets,
        labels=snakemake.params.labels,
        missing_ok=snakemake.params.missing_ok,
    )

"""Make one table of results, as LaTeX and as CSV."""

from persistcal.report.grid import as_csv, fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.layout import Description, DisplayNames
from persistcal.store.artifacts import Metrics, Significance
from persistcal.store.jobs import log, run


def make_table(
    metrics: Metrics,
    significance: Significance,
    *,
    table: str,
    description: Description,
    models: list[str],
    datasets: dict[str, list[str]],
    labels: DisplayNames,
    missing_ok: bool,
) -> tuple[str, str]:
    """Return LaTeX and CSV of the table named `table`, with settings of `fill_cells`."""
    try:
        cells = fill_cells(
            metrics,
            significance,
            description,
            models=models,
            datasets=datasets,
            missing_ok=missing_ok,
        )
    except ValueError as error:
        raise ValueError(f"Table {table}: {error}") from error
    empty = cells.loc[cells["value"].isna(), ["model", "dataset", "estimator"]]
    for cell in empty.drop_duplicates().itertuples(index=False):
        log.warning("%s: not every metric has a value for %s", table, ", ".join(cell))
    grids, caption = lay_out(cells, description, labels=labels), description["caption"]
    tex = results_table(grids, caption=caption, label=table.replace("_", "-"))
    return tex, as_csv(cells, table)


if __name__ == "__main__":
    run(make_table, snakemake)

"""Compare a study's numbers and marks with those in the paper."""

import pandas as pd

from persistcal.report.layout import DisplayNames
from persistcal.report.paper import compare, paper_cells
from persistcal.store.artifacts import Intervals, PaperComparison
from persistcal.store.jobs import log, run
from persistcal.store.tables import TableFiles


def compare_with_paper(
    intervals: Intervals,
    tables: list[TableFiles],
    paper: TableFiles,
    *,
    labels: DisplayNames,
    settings: str,
) -> PaperComparison:
    """Return every cell that the study shares with the paper, with marks from `tables`."""
    printed = paper.rows()
    comparison = compare(
        paper_cells(printed),
        intervals,
        pd.concat(table.rows(missing={"value": [""]}) for table in tables),
        models=labels["models"],
        datasets=labels["datasets"],
        settings=settings,
    )
    marked = comparison.dropna(subset=["bold", "underline"])
    differs = (marked["bold"] != marked["paper_bold"]) | (
        marked["underline"] != marked["paper_underline"]
    )
    log.info(
        "%d of the paper's %d cells are in this study; %d lie in our 95 %% interval; %d have "
        "marks, %d of them other ones",
        len(comparison),
        len(printed),
        comparison["inside"].fillna(False).sum(),
        len(marked),
        differs.sum(),
    )
    return comparison


if __name__ == "__main__":
    run(compare_with_paper, snakemake)

"""Compare the numbers and marks of a study with the paper."""

import pandas as pd

from persistcal.report.layout import DisplayNames
from persistcal.store.artifacts import Intervals, PaperComparison, PaperNumbers
from persistcal.store.jobs import log, run
from persistcal.store.tables import TableFiles
from reproduce.paper import compare, paper_cells
from reproduce.paper_numbers import Names, compare_numbers, measured_numbers, printed_numbers


def compare_with_paper(
    intervals: Intervals,
    tables: list[TableFiles],
    paper: TableFiles,
    printed: list[TableFiles],
    measured: list[TableFiles],
    *,
    labels: DisplayNames,
    checkpoints: dict[str, dict[str, str]],
    settings: str,
) -> tuple[PaperComparison, PaperNumbers]:
    """Return the cells and other numbers that the study shares with the paper.

    Marks are from `tables`. The other numbers are `printed` in the paper, and `measured` in
    tables of the study; `checkpoints` are display names by model.
    """
    cells = paper.rows()
    comparison = compare(
        paper_cells(cells),
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
        "%d of the paper's %d cells are in this study, %d of them in our 95 %% interval; %d "
        "have marks, and %d of these differ",
        len(comparison),
        len(cells),
        comparison["inside"].fillna(False).sum(),
        len(marked),
        differs.sum(),
    )
    numbers = compare_numbers(
        printed_numbers({table.name: table.rows() for table in printed}),
        measured_numbers(
            (table.rows(missing=[""]) for table in measured),
            Names(labels["models"], labels["datasets"], checkpoints),
        ),
    )
    log.info(
        "%d other printed numbers are in this study, %d of them the same",
        len(numbers),
        numbers["same"].fillna(False).sum(),
    )
    return comparison, numbers


if __name__ == "__main__":
    run(compare_with_paper, snakemake)

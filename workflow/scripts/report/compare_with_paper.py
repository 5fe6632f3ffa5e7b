"""Put a study's numbers and marks beside those printed in the paper."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.report.paper import compare, paper_cells
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def compare_with_paper(
    intervals_path: str,
    tables_paths: Sequence[str],
    paper_path: str,
    comparison_path: str,
    *,
    labels: Mapping[str, Mapping[str, str]],
    settings: str,
) -> None:
    """Write every cell that the study shares with the paper to `comparison_path`.

    The marks are those of the cells at `tables_paths`, as `make_table` writes them.
    """
    printed = pd.read_csv(paper_path, keep_default_na=False)
    intervals = artifacts.read_csv(intervals_path, artifacts.INTERVALS)
    plain: dict[str, Any] = {"keep_default_na": False, "na_values": {"value": [""]}}
    comparison = compare(
        paper_cells(printed),
        intervals,
        pd.concat(pd.read_csv(path, **plain) for path in tables_paths),
        models=labels["models"],
        datasets=labels["datasets"],
        settings=settings,
    )
    artifacts.write_csv(comparison, comparison_path, artifacts.PAPER_COMPARISON)
    marked = comparison.dropna(subset=["bold", "underline"])
    other = (marked["bold"] != marked["paper_bold"]) | (
        marked["underline"] != marked["paper_underline"]
    )
    log.info(
        "%d of the paper's %d cells are in this study; %d lie in our 95 %% interval; %d have "
        "marks, %d of them other ones",
        len(comparison),
        len(printed),
        comparison["inside"].fillna(False).sum(),
        len(marked),
        other.sum(),
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compare_with_paper(
        snakemake.input.intervals,
        snakemake.input.tables,
        snakemake.input.paper,
        snakemake.output.comparison,
        labels=snakemake.params.labels,
        settings=snakemake.params.settings,
    )

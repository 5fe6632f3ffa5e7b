"""Put a study's numbers beside those printed in the paper."""

import logging
from collections.abc import Mapping

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.paper import compare, paper_cells

log = logging.getLogger(__name__)


def compare_with_paper(
    intervals_path: str,
    paper_path: str,
    comparison_path: str,
    *,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write every cell that the study shares with the paper to `comparison_path`."""
    printed = pd.read_csv(paper_path, keep_default_na=False)
    intervals = artifacts.read_csv(intervals_path, artifacts.INTERVALS)
    comparison = compare(
        paper_cells(printed), intervals, models=labels["models"], datasets=labels["datasets"]
    )
    artifacts.write_csv(comparison, comparison_path, artifacts.PAPER_COMPARISON)
    log.info(
        "%d of the paper's %d cells are in this study; %d lie in our 95 %% interval",
        len(comparison),
        len(printed),
        comparison["inside"].fillna(False).sum(),
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compare_with_paper(
        snakemake.input.intervals,
        snakemake.input.paper,
        snakemake.output.comparison,
        labels=snakemake.params.labels,
    )

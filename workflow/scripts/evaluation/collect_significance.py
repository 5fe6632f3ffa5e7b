"""Collect the tests of all tables and the intervals of all estimators."""

from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def collect_significance(
    significance_paths: Sequence[str],
    intervals_paths: Sequence[str],
    significance_path: str,
    intervals_path: str,
) -> None:
    """Write the tables at all paths of a kind into one CSV; two tables may share a test."""
    tests = pd.concat(
        artifacts.read(path, artifacts.SIGNIFICANCE) for path in significance_paths
    )
    tests = tests.drop_duplicates(list(artifacts.SIGNIFICANCE.key))
    artifacts.write_csv(tests, significance_path, artifacts.SIGNIFICANCE)
    intervals = pd.concat(artifacts.read(path, artifacts.INTERVALS) for path in intervals_paths)
    artifacts.write_csv(intervals, intervals_path, artifacts.INTERVALS)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    collect_significance(
        snakemake.input.significance,
        snakemake.input.intervals,
        snakemake.output.significance,
        snakemake.output.intervals,
    )

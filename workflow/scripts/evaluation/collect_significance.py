"""Collect the tests of all tables and the intervals of all estimators."""

from persistcal.store.artifacts import SIGNIFICANCE, Intervals, Significance
from persistcal.store.jobs import run


def collect_significance(
    significance: Significance, intervals: Intervals
) -> tuple[Significance, Intervals]:
    """Return both tables, each test once: two tables of results may share one."""
    return significance.drop_duplicates(list(SIGNIFICANCE.key)), intervals


if __name__ == "__main__":
    run(collect_significance, snakemake)

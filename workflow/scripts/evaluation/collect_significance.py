"""Collect the tests of all tables and the intervals of all estimators."""

from persistcal.evaluation.significance import holm_over_tables
from persistcal.store.artifacts import SIGNIFICANCE, Intervals, Significance
from persistcal.store.jobs import run


def collect_significance(
    significance: Significance, intervals: Intervals, *, holm: str
) -> tuple[Significance, Intervals]:
    """Return both tables with each test once, because tables of results can share tests.

    The p-values are adjusted by Holm's method for the tests of a block, or for the tests of all
    tables if `holm` is "tables".
    """
    tests = significance.drop_duplicates(list(SIGNIFICANCE.key))
    return holm_over_tables(tests) if holm == "tables" else tests, intervals


if __name__ == "__main__":
    run(collect_significance, snakemake)

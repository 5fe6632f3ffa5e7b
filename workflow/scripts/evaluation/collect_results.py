"""Collect metrics, intervals, tests and contrast sets: the files of each in one table."""

from persistcal.evaluation.proportions import holm as adjust
from persistcal.evaluation.significance import KEY
from persistcal.store import artifacts
from persistcal.store.jobs import run


def collect_results(
    metrics: artifacts.Metrics,
    intervals: artifacts.Intervals,
    significance: artifacts.Significance,
    contrast_sets: artifacts.ContrastMembers,
    *,
    holm: str,
) -> tuple[
    artifacts.Metrics, artifacts.Intervals, artifacts.Significance, artifacts.ContrastSets
]:
    """Return the tables with each test once, because tables of results can share tests.

    The p-values are adjusted by Holm's method for the tests of a block, or for the tests of all
    tables if `holm` is "tables".
    """
    tests = significance.drop_duplicates(list(artifacts.SIGNIFICANCE.key))
    if holm == "tables":  # a test that two blocks share counts twice, which is conservative
        families = tests.groupby(KEY, sort=False)["p_value"]
        tests = tests.assign(p_holm=families.transform(adjust))
    return metrics, intervals, tests, contrast_sets[artifacts.CONTRAST_SETS.schema.names]


if __name__ == "__main__":
    run(collect_results, snakemake)

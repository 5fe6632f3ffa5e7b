"""Test the best estimator of each comparison of a table against the others, in pairs."""

from persistcal.evaluation import pipeline
from persistcal.store.artifacts import Replicates, Significance
from persistcal.store.jobs import run


def compare_table(
    replicates: Replicates, *, comparisons: list[tuple[str, str, list[list[tuple[str, str]]]]]
) -> Significance:
    """Return the tests of a table: each model and dataset with its blocks of estimators.

    An estimator of a block is a pair (train_dataset, estimator).
    """
    return pipeline.compare_table(replicates, comparisons)


if __name__ == "__main__":
    run(compare_table, snakemake)

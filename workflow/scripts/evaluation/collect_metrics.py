"""Collect the metrics of all estimators and all contrast sets."""

from persistcal.store.artifacts import ContrastSets, Metrics
from persistcal.store.jobs import run


def collect_metrics(
    metrics: Metrics, contrast_sets: ContrastSets
) -> tuple[Metrics, ContrastSets]:
    """Return both tables as they are: the files of each, one below the other."""
    return metrics, contrast_sets


if __name__ == "__main__":
    run(collect_metrics, snakemake)

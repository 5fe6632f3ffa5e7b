"""Collect the metrics of all estimators and all contrast sets."""

from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def collect_metrics(
    metrics_paths: Sequence[str],
    contrast_sets_paths: Sequence[str],
    metrics_path: str,
    contrast_sets_path: str,
) -> None:
    """Write the tables at all paths of a kind into one CSV."""
    metrics = pd.concat(artifacts.read(path, artifacts.METRICS) for path in metrics_paths)
    artifacts.write_csv(metrics, metrics_path, artifacts.METRICS)
    sets = pd.concat(
        artifacts.read(path, artifacts.CONTRAST_SETS) for path in contrast_sets_paths
    )
    artifacts.write_csv(sets, contrast_sets_path, artifacts.CONTRAST_SETS)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    collect_metrics(
        snakemake.input.metrics,
        snakemake.input.contrast_sets,
        snakemake.output.metrics,
        snakemake.output.contrast_sets,
    )

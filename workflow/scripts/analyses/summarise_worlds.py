"""Summarise the metrics of models that differ in the seed of their pre-training."""

from collections.abc import Mapping, Sequence

from persistcal.analyses.worlds import spread_over_worlds
from persistcal.report.analysis_tables import worlds_table
from persistcal.store.artifacts import Metrics, Worlds
from persistcal.store.jobs import run


def summarise_worlds(
    metrics: Metrics,
    *,
    worlds: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    labels: Mapping[str, Mapping[str, str]],
) -> tuple[str, Worlds]:
    """Return the spread of each metric over `worlds`, as a LaTeX table and as rows.

    `worlds` are the models that share a name, and `names` its display name.
    """
    rows = spread_over_worlds(metrics, worlds)
    return worlds_table(rows, names=names, **labels, label="worlds"), rows


if __name__ == "__main__":
    run(summarise_worlds, snakemake)

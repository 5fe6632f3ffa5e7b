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
    """Return the spread over models of each metric, as a LaTeX table and as rows.

    Parameters
    ----------
    metrics : Metrics
        Of all models.
    worlds : mapping of str to sequence of str
        By the name that they share, the models.
    names : mapping of str to str
        What is printed for that name.
    labels : mapping
        What is printed for `datasets` and `estimators`.
    """
    rows = spread_over_worlds(metrics, worlds)
    return worlds_table(rows, names=names, **labels, label="worlds"), rows


if __name__ == "__main__":
    run(summarise_worlds, snakemake)

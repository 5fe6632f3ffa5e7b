"""Summarise the metrics of models that differ in the seed of their pre-training."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from persistcal import artifacts
from persistcal.analyses.worlds import spread_over_worlds
from persistcal.logs import log_to
from persistcal.report.analysis_tables import worlds_table

log = logging.getLogger(__name__)


def summarise_worlds(
    metrics_path: str,
    tex_path: str,
    csv_path: str,
    *,
    worlds: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the table WORLDS to `csv_path`, and as LaTeX to `tex_path`.

    Parameters
    ----------
    metrics_path : str
        CSV of METRICS of all models.
    worlds : mapping of str to sequence of str
        By the name that they share, the models.
    names : mapping of str to str
        What is printed for that name.
    labels : mapping
        What is printed for `datasets` and `estimators`.
    """
    metrics = artifacts.read_csv(metrics_path, artifacts.METRICS)
    try:
        rows = spread_over_worlds(metrics, worlds)
    except ValueError as error:
        raise ValueError(f"{metrics_path}: {error}.") from error
    text = worlds_table(rows, names=names, **labels, label="worlds")
    Path(tex_path).write_text(text, encoding="utf-8")
    artifacts.write_csv(rows, csv_path, artifacts.WORLDS)
    log.info("Wrote %s: %d metrics of %s", tex_path, len(rows), dict(worlds))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    summarise_worlds(
        snakemake.input.metrics,
        snakemake.output.tex,
        snakemake.output.csv,
        worlds=snakemake.params.worlds,
        names=snakemake.params.names,
        labels=snakemake.params.labels,
    )

"""Correlate the variance of hidden states over seeds with the order of checkpoints."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.analyses.variance import correlations_by_layer
from persistcal.logs import log_to
from persistcal.report.analysis_tables import hidden_state_table

log = logging.getLogger(__name__)


def correlate_variance(
    variances_paths: Sequence[str],
    tex_path: str,
    csv_path: str,
    *,
    measured: Sequence[tuple[str, str, str]],
    labels: Mapping[str, Mapping[str, str]],
    last_layer: str,
) -> None:
    """Write mean and median correlation of each layer to `tex_path` and `csv_path`.

    Parameters
    ----------
    variances_paths : sequence of str
        Tables VARIANCES.
    tex_path : str
        A `table` environment.
    csv_path : str
        One row per model, dataset and layer.
    measured : sequence of (model, checkpoint, dataset)
        What each of `variances_paths` is about, checkpoints in order of training.
    labels : mapping
        What is printed for each of `models` and `datasets`.
    last_layer : str
        As for `measure_variance`.
    """
    by_group: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for path, (model, _, dataset) in zip(variances_paths, measured, strict=True):
        table = artifacts.read(path, artifacts.VARIANCES)
        by_group.setdefault((model, dataset), []).append(table)
    rows = pd.concat(
        [
            pd.DataFrame({"model": model, "dataset": dataset, **correlations_by_layer(tables)})
            for (model, dataset), tables in by_group.items()
        ]
    )
    text = hidden_state_table(
        rows,
        models=labels["models"],
        datasets=labels["datasets"],
        last_layer=last_layer,
        label="hidden-state-variance",
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    rows.to_csv(csv_path, index=False)
    log.info("Wrote %s: %d layers, mean ρ %.3f", tex_path, len(rows), rows["mean_rho"].mean())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    correlate_variance(
        snakemake.input.variances,
        snakemake.output.tex,
        snakemake.output.csv,
        measured=snakemake.params.measured,
        labels=snakemake.params.labels,
        last_layer=snakemake.params.last_layer,
    )

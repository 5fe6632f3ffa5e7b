"""Write the similarities of all checkpoints' weights as LaTeX and as CSV."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.analysis_tables import similarity_table

log = logging.getLogger(__name__)


def make_weights_table(
    similarities_paths: Sequence[str],
    tex_path: str,
    csv_path: str,
    *,
    checkpoints: Mapping[str, Mapping[str, str]],
    models: Mapping[str, str],
) -> None:
    """Write the cosine similarities of all models to `tex_path` and `csv_path`."""
    rows = pd.concat(
        artifacts.read_csv(path, artifacts.WEIGHT_SIMILARITIES) for path in similarities_paths
    )
    text = similarity_table(
        rows, checkpoints=checkpoints, models=models, label="weight-similarity"
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    artifacts.write_csv(rows, csv_path, artifacts.WEIGHT_SIMILARITIES)
    log.info("Wrote %s: %d pairs of checkpoints", tex_path, len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_weights_table(
        snakemake.input.similarities,
        snakemake.output.tex,
        snakemake.output.csv,
        checkpoints=snakemake.params.checkpoints,
        models=snakemake.params.models,
    )

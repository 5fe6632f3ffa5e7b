"""Write training tokens and accuracies of all checkpoints as LaTeX and as CSV."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.study_tables import checkpoint_rows, checkpoints_table

log = logging.getLogger(__name__)


def make_checkpoints_table(
    accuracies_path: str,
    tex_path: str,
    csv_path: str,
    *,
    checkpoints: Mapping[str, Mapping[str, Mapping[str, Any]]],
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the table of checkpoints to `tex_path` and `csv_path`."""
    accuracies = artifacts.read_csv(accuracies_path, artifacts.ACCURACIES)
    rows = checkpoint_rows(accuracies, checkpoints)
    if rows.empty:
        raise ValueError(f"{accuracies_path}: no accuracy of a checkpoint of this study.")
    text = checkpoints_table(
        rows,
        checkpoints=checkpoints,
        models=labels["models"],
        datasets=labels["datasets"],
        label="checkpoints",
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    rows.to_csv(csv_path, index=False)
    log.info("Wrote %s: %d accuracies", tex_path, len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_checkpoints_table(
        snakemake.input.accuracies,
        snakemake.output.tex,
        snakemake.output.csv,
        checkpoints=snakemake.params.checkpoints,
        labels=snakemake.params.labels,
    )

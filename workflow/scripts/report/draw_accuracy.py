"""Draw accuracy over training."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from persistcal.report.figures import accuracy_figure, house_style, save_figure
from persistcal.report.study_tables import checkpoint_rows
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_accuracy(
    accuracies_path: str,
    pdf_path: str,
    png_path: str,
    *,
    checkpoints: Mapping[str, Mapping[str, Mapping[str, Any]]],
    evaluation: Mapping[str, Sequence[str]],
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Draw the accuracy of all checkpoints to `pdf_path` and `png_path`."""
    rows = checkpoint_rows(
        artifacts.read_csv(accuracies_path, artifacts.ACCURACIES), checkpoints
    )
    if rows.empty:
        raise ValueError(f"{accuracies_path}: no accuracy of a checkpoint of this study.")
    with house_style():
        figure = accuracy_figure(
            rows, evaluation=evaluation, models=labels["models"], datasets=labels["datasets"]
        )
        save_figure(figure, pdf_path, png_path)
    log.info("Drew %d accuracies", len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_accuracy(
        snakemake.input.accuracies,
        snakemake.output.pdf,
        snakemake.output.png,
        checkpoints=snakemake.params.checkpoints,
        evaluation=snakemake.params.evaluation,
        labels=snakemake.params.labels,
    )

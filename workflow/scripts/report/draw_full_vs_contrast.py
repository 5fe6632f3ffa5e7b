"""Draw AUC on the full set against AUC on contrast sets."""

import logging
from collections.abc import Mapping

from persistcal.report.figures import full_vs_contrast_figure, house_style, save_figure
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_full_vs_contrast(
    intervals_path: str,
    pdf_path: str,
    png_path: str,
    *,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Draw both AUCs of every estimator to `pdf_path` and `png_path`."""
    intervals = artifacts.read_csv(intervals_path, artifacts.INTERVALS)
    with house_style():
        figure = full_vs_contrast_figure(
            intervals,
            models=labels["models"],
            datasets=labels["datasets"],
            estimators=labels["estimators"],
        )
        save_figure(figure, pdf_path, png_path)
    log.info("Drew full-set against contrast-set AUC")


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_full_vs_contrast(
        snakemake.input.intervals,
        snakemake.output.pdf,
        snakemake.output.png,
        labels=snakemake.params.labels,
    )

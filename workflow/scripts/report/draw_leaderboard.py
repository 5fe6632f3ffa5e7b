"""Draw Δ₀ᵇ and both AUCs of many estimators, a row for each."""

import logging
from collections.abc import Mapping, Sequence

from persistcal.report.figures import house_style, save_figure
from persistcal.report.leaderboard import leaderboard_figure
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_leaderboard(
    intervals_path: str,
    pdf_path: str,
    png_path: str,
    *,
    only: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Draw the estimators `only` to `pdf_path` and `png_path`, by Δ₀ᵇ."""
    intervals = artifacts.read_csv(intervals_path, artifacts.INTERVALS)
    intervals = intervals[intervals["estimator"].isin(only)]
    with house_style():
        try:
            figure = leaderboard_figure(intervals, **labels)
        except ValueError as error:
            raise ValueError(f"{intervals_path}: {error}.") from error
        save_figure(figure, pdf_path, png_path)
    log.info("Drew %d estimators", intervals["estimator"].nunique())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_leaderboard(
        snakemake.input.intervals,
        snakemake.output.pdf,
        snakemake.output.png,
        only=snakemake.params.only,
        labels=snakemake.params.labels,
    )

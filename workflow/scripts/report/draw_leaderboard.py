"""Draw Δ₀ᵇ and both AUCs of many estimators, a row for each."""

import logging
from collections.abc import Sequence

from persistcal.report.drawing import Drawing
from persistcal.report.figures import leaderboard_figure
from persistcal.report.layout import DisplayNames
from persistcal.store.artifacts import Intervals
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_leaderboard(
    intervals: Intervals, *, only: Sequence[str], labels: DisplayNames
) -> Drawing:
    """Draw the estimators `only`, by Δ₀ᵇ."""
    shown = intervals[intervals["estimator"].isin(only)]
    log.info("Drew %d estimators", shown["estimator"].nunique())
    return leaderboard_figure(shown, **labels)


if __name__ == "__main__":
    run(draw_leaderboard, snakemake)

"""Draw the headroom of the external verifier against the error rate of its backbone."""

import logging

from persistcal.report.analysis_figures import headroom_figure
from persistcal.report.drawing import Drawing
from persistcal.report.layout import DisplayNames
from persistcal.store.artifacts import Headroom
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_gcm_headroom(
    headroom: Headroom, *, verifier: str, oracle: str, labels: DisplayNames
) -> Drawing:
    """Draw one point per model and dataset."""
    log.info("Drew %d headrooms", len(headroom))
    names = labels["estimators"]
    return headroom_figure(
        headroom,
        models=labels["models"],
        datasets=labels["datasets"],
        verifier=names[verifier],
        oracle=names[oracle],
    )


if __name__ == "__main__":
    run(draw_gcm_headroom, snakemake)

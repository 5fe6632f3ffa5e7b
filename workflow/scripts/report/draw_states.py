"""Draw the differences between states."""

import logging
from collections.abc import Sequence

from persistcal.report.drawing import Drawing
from persistcal.report.layout import DisplayNames
from persistcal.report.state_views import states_figure
from persistcal.store.artifacts import States
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_states(
    states: States, *, checkpoints: DisplayNames, labels: DisplayNames, only: Sequence[str]
) -> Drawing:
    """Draw the differences of each pair; of estimators those in `only`."""
    log.info("Drew %d differences", len(states))
    return states_figure(states, checkpoints=checkpoints, labels=labels, only=only)


if __name__ == "__main__":
    run(draw_states, snakemake)

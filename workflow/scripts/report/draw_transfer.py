"""Draw the transfer matrices of one dataset side by side."""

import logging
from collections.abc import Mapping, Sequence

from persistcal.report.analysis_figures import Sets, transfer_figure
from persistcal.report.drawing import Drawing
from persistcal.report.layout import Names
from persistcal.store.artifacts import Transfer
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_transfer(
    transfer: Transfer,
    *,
    sets: Mapping[str, Mapping[str, Sets]],
    random_later: Sequence[str],
    checkpoints: Mapping[str, Names],
    models: Names,
    recipes: Names,
) -> Drawing:
    """Draw the AUC of each adapter at each checkpoint, with settings of `transfer_figure`."""
    log.info("Drew %d AUCs", len(transfer))
    return transfer_figure(
        transfer,
        sets=sets,
        random_later=random_later,
        checkpoints=checkpoints,
        models=models,
        recipes=recipes,
    )


if __name__ == "__main__":
    run(draw_transfer, snakemake)

"""Draw accuracy over training."""

import logging
from collections.abc import Mapping, Sequence

from persistcal.report.drawing import Drawing
from persistcal.report.figures import accuracy_figure
from persistcal.report.layout import DisplayNames
from persistcal.report.plain_tables import Described, checkpoint_rows
from persistcal.store.artifacts import Accuracies
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_accuracy(
    accuracies: Accuracies,
    *,
    checkpoints: Described,
    evaluation: Mapping[str, Sequence[str]],
    labels: DisplayNames,
) -> Drawing:
    """Draw the accuracy of all checkpoints; `evaluation` names some of them by model."""
    rows = checkpoint_rows(accuracies, checkpoints)
    log.info("Drew %d accuracies", len(rows))
    return accuracy_figure(rows, evaluation=evaluation, **labels)


if __name__ == "__main__":
    run(draw_accuracy, snakemake)

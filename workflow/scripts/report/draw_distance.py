"""Draw what estimators notice over the distance between checkpoints."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.analyses.distance import metrics_of_pairs
from persistcal.evaluation.contrast import Pairs as ChosenPairs
from persistcal.report.analysis_figures import distance_figure
from persistcal.report.drawing import Drawing
from persistcal.report.layout import DisplayNames
from persistcal.store.artifacts import Pairs, Predictions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def draw_distance(
    predictions: list[Predictions],
    *,
    checkpoints: Mapping[str, Sequence[str]],
    min_contrast: Mapping[str, int],
    pairs: ChosenPairs,
    labels: DisplayNames,
) -> tuple[Drawing, Drawing, Pairs]:
    """Return the metrics of each pair of checkpoints, drawn over their distance and as rows.

    `checkpoints` are by model those of the evaluation, and `min_contrast` is by dataset.
    """
    parts = []
    for of_estimator in predictions:
        for place, rows in of_estimator.groupby(["model", "dataset"]):
            model, dataset = map(str, place)
            found = metrics_of_pairs(
                rows, checkpoints[model], min_contrast=min_contrast[dataset], pairs=pairs
            )
            parts.append(found.assign(model=model, dataset=dataset))
    table = pd.concat(parts, ignore_index=True)
    figure = distance_figure(table, models=labels["models"], estimators=labels["estimators"])
    log.info("%d metrics of pairs", len(table))
    return figure, figure, table


if __name__ == "__main__":
    run(draw_distance, snakemake)

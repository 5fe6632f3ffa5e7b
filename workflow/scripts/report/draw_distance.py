"""Draw what estimators notice over the distance between checkpoints."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.analyses.distance import metrics_of_pairs
from persistcal.evaluation.contrast import Pairs
from persistcal.report.analysis_figures import distance_figure
from persistcal.report.figures import house_style, save_figure
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_distance(
    predictions_paths: Sequence[str],
    csv_path: str,
    pdf_path: str,
    png_path: str,
    *,
    places: Sequence[Mapping[str, Any]],
    pairs: Pairs,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the metrics of each pair of checkpoints, and draw them over their distance.

    Parameters
    ----------
    predictions_paths : sequence of str
        Tables `persistcal.store.artifacts.PREDICTIONS`.
    csv_path : str
        Table `persistcal.store.artifacts.PAIRS`.
    places : sequence of mapping
        Of each table its `model` and `dataset`, and the model's evaluation `checkpoints`
        and the dataset's `min_contrast`.
    pairs, labels
        As in the config, and what is printed for `models` and `estimators`.
    """
    parts = [
        metrics_of_pairs(
            artifacts.read(path, artifacts.PREDICTIONS),
            place["checkpoints"],
            min_contrast=place["min_contrast"],
            pairs=pairs,
        ).assign(model=place["model"], dataset=place["dataset"])
        for path, place in zip(predictions_paths, places, strict=True)
    ]
    table = pd.concat(parts, ignore_index=True)[artifacts.PAIRS.schema.names]
    artifacts.write_csv(table, csv_path, artifacts.PAIRS)
    with house_style():
        figure = distance_figure(
            table, models=labels["models"], estimators=labels["estimators"]
        )
        save_figure(figure, pdf_path, png_path)
    log.info("%d metrics of pairs", len(table))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    params = snakemake.params
    draw_distance(
        snakemake.input.predictions,
        snakemake.output.csv,
        snakemake.output.pdf,
        snakemake.output.png,
        places=params.places,
        pairs=params.pairs,
        labels=params.labels,
    )

"""Measure each pair of checkpoints, and the means for each value of min_contrast."""

import pandas as pd

from persistcal.evaluation.contrast import Pairs as ChosenPairs
from persistcal.evaluation.subsets import metrics_of_pairs, sweep_min_contrast
from persistcal.store.artifacts import (
    MIN_CONTRAST,
    PAIRS,
    MinContrast,
    Pairs,
    Predictions,
    empty,
)
from persistcal.store.jobs import log, run


def measure_pairs(
    predictions: list[Predictions],
    *,
    checkpoints: dict[str, list[str]],
    min_contrast: dict[str, int],
    pairs: ChosenPairs,
) -> tuple[Pairs, MinContrast]:
    """Return the metrics of each pair, and their means for each value of min_contrast.

    `checkpoints` maps models to evaluation checkpoints, and `min_contrast` datasets to sizes.
    """
    measured, swept = [], []
    for of_estimator in predictions:
        for place, rows in of_estimator.groupby(["model", "dataset"], sort=False):
            model, dataset = map(str, place)
            chosen = min_contrast[dataset]
            table = metrics_of_pairs(rows, checkpoints[model], min_contrast=chosen, pairs=pairs)
            labels = {"model": model, "dataset": dataset}
            measured.append(table.assign(**labels))
            swept.append(sweep_min_contrast(table, chosen=chosen).assign(**labels))
    log.info("%d metrics of pairs", sum(map(len, measured)))
    return _together(measured, empty(PAIRS)), _together(swept, empty(MIN_CONTRAST))


def _together(tables: list[pd.DataFrame], empty_table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(
        [table for table in tables if len(table)] or [empty_table], ignore_index=True
    )


if __name__ == "__main__":
    run(measure_pairs, snakemake)

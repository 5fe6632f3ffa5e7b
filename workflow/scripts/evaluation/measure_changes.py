"""Measure each named kind of change."""

import pandas as pd

from persistcal.evaluation.subsets import metrics_of_changes
from persistcal.store.artifacts import CHANGES, Changes, Predictions, empty
from persistcal.store.jobs import log, run


def measure_changes(
    predictions: list[Predictions],
    *,
    checkpoints: dict[str, list[str]],
    changes: dict[str, list[list[str]]],
    controls: dict[str, str],
    min_direction: int,
    n_replicates: int,
    seed: int,
) -> Changes:
    """Return the metrics of each kind of change, estimator by estimator.

    `persistcal.evaluation.subsets.metrics_of_changes` describes the settings.
    """
    settings = {"min_direction": min_direction, "n_replicates": n_replicates, "seed": seed}
    tables = []
    together = pd.concat(predictions)
    for place, rows in together.groupby(["dataset", "train_dataset", "estimator"], sort=False):
        of_estimator = metrics_of_changes(
            rows, checkpoints, changes, controls=controls, **settings
        )
        tables.append(of_estimator.assign(dataset=str(place[0])))
    log.info("%d metrics of changes", sum(map(len, tables)))
    return pd.concat([table for table in tables if len(table)] or [empty(CHANGES)])


if __name__ == "__main__":
    run(measure_changes, snakemake)

"""Measure each named kind of change."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.evaluation.parts import metrics_of_changes
from persistcal.store.artifacts import CHANGES, Changes, Predictions, empty
from persistcal.store.jobs import log, run


def measure_changes(
    predictions: list[Predictions],
    *,
    checkpoints: Mapping[str, Sequence[str]],
    changes: Mapping[str, Sequence[Sequence[str]]],
    n_replicates: int,
    seed: int,
) -> Changes:
    """Return the metrics of each kind of change, estimator by estimator.

    `checkpoints` are by model those of the evaluation; the other settings are those of
    `persistcal.evaluation.parts.metrics_of_changes`.
    """
    tables = []
    how = {"n_replicates": n_replicates, "seed": seed}
    for of_estimator in predictions:
        for place, rows in of_estimator.groupby(["model", "dataset"], sort=False):
            model, dataset = map(str, place)
            of_place = metrics_of_changes(rows, checkpoints[model], changes, **how)
            tables.append(of_place.assign(model=model, dataset=dataset))
    log.info("%d metrics of changes", sum(map(len, tables)))
    return pd.concat([table for table in tables if len(table)] or [empty(CHANGES)])


if __name__ == "__main__":
    run(measure_changes, snakemake)

"""Select thresholds on earlier checkpoints and check them on later ones."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.evaluation import thresholds as evaluation
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.selective import selective_metrics
from persistcal.store.artifacts import (
    Answers,
    ConfidentRegressions,
    Predictions,
    Selective,
    ThresholdCells,
    Thresholds,
)
from persistcal.store.jobs import log, run


def check_thresholds(
    predictions: list[Predictions],
    answers: Answers,
    *,
    checkpoints: Mapping[str, Sequence[str]],
    pairs: Pairs,
    threshold: Mapping[str, float],
    n_replicates: int,
    seed: int,
) -> tuple[Thresholds, ThresholdCells, ConfidentRegressions, Selective]:
    """Return thresholds, counts behind their changes, regressions and selective metrics.

    `checkpoints` contains the evaluation checkpoints of each model, and `threshold` the
    `precision` and `delta` of the selection.
    """
    parts = []
    for rows_of_estimator in predictions:
        for (model, dataset), rows in rows_of_estimator.groupby(["model", "dataset"]):
            chosen = checkpoints[str(model)]
            tables = evaluation.check_thresholds(
                rows,
                chosen,
                pairs=pairs,
                n_replicates=n_replicates,
                seed=seed,
                **threshold,
            )
            place = {"model": str(model), "dataset": str(dataset)}
            made = *tables, selective_metrics(rows, chosen)
            parts.append([table.assign(**place) for table in made])
    thresholds, cells, regressions, selective = (
        pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True)
    )
    log.info("%s", thresholds["verdict"].value_counts().to_dict())
    return thresholds, cells, evaluation.add_answers(regressions, answers), selective


if __name__ == "__main__":
    run(check_thresholds, snakemake)

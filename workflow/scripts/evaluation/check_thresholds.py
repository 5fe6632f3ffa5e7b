"""Select thresholds on earlier checkpoints and check them on later ones."""

from persistcal.evaluation import thresholds as evaluation
from persistcal.evaluation.contrast import Pairs
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
    checkpoints: dict[str, list[str]],
    pairs: Pairs,
    threshold: dict[str, float],
    n_replicates: int,
    seed: int,
) -> tuple[Thresholds, ThresholdCells, ConfidentRegressions, Selective]:
    """Return thresholds, counts behind their changes, regressions and selective metrics.

    `checkpoints` contains the evaluation checkpoints of each model, and `threshold` the
    `precision` and `delta` of the selection.
    """
    tables = evaluation.check_thresholds(
        predictions,
        checkpoints,
        answers,
        pairs=pairs,
        n_replicates=n_replicates,
        seed=seed,
        **threshold,
    )
    log.info("%s", tables.thresholds["verdict"].value_counts().to_dict())
    return tables


if __name__ == "__main__":
    run(check_thresholds, snakemake)

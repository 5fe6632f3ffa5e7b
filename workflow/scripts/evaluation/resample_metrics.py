"""Compute the metrics of an estimator on bootstrap replicates, and their intervals."""

from typing import Any

from persistcal.evaluation.contrast import Conditioning, Pairs
from persistcal.evaluation.reliability import add_noise_floors, noise_floors
from persistcal.evaluation.replicates import digest_of_draws, replicate_metrics, to_table
from persistcal.evaluation.significance import intervals
from persistcal.store.artifacts import (
    INTERVALS,
    REPLICATES,
    Intervals,
    Predictions,
    Replicates,
    empty,
)
from persistcal.store.jobs import log, run


def resample_metrics(
    predictions: Predictions,
    *,
    checkpoints: list[str],
    min_contrast: int,
    min_direction: int,
    conditioning: list[Conditioning],
    n_replicates: int,
    seed: int,
    pairs: Pairs,
) -> tuple[Replicates, Intervals]:
    """Return the metrics of one model's predictions on one dataset, replicate by replicate.

    `persistcal.evaluation.replicates.replicate_metrics` describes the settings.
    """
    if predictions.empty:
        log.warning("There are no predictions, so nothing to resample")
        return empty(REPLICATES), empty(INTERVALS)
    sets: dict[str, Any] = {"min_contrast": min_contrast, "pairs": pairs, "seed": seed}
    settings = sets | {"min_direction": min_direction, "n_replicates": n_replicates}
    metrics = replicate_metrics(
        predictions, checkpoints, conditionings=conditioning, **settings
    )
    drawn = digest_of_draws(predictions, checkpoints, **settings)
    floors = noise_floors(predictions, checkpoints, conditionings=conditioning, **sets)
    ends = add_noise_floors(intervals(metrics), floors)
    log.info("%d replicates of %d metrics", n_replicates, len(ends))
    return to_table(metrics, drawn), ends


if __name__ == "__main__":
    run(resample_metrics, snakemake)

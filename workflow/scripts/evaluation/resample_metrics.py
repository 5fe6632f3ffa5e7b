"""Compute the metrics of an estimator on bootstrap replicates, and their intervals."""

import logging
from collections.abc import Sequence
from typing import Any

from persistcal import artifacts
from persistcal.evaluation.conditioning import Conditioning
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.replicates import digest_of_draws, to_table
from persistcal.evaluation.significance import intervals, replicate_metrics
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def resample_metrics(
    predictions_path: str,
    replicates_path: str,
    intervals_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    conditioning: Sequence[Conditioning],
    n_replicates: int,
    seed: int,
    pairs: Pairs,
) -> None:
    """Write the REPLICATES and INTERVALS of the PREDICTIONS of one model on one dataset.

    `checkpoints`, `min_contrast`, `conditioning`, `n_replicates`, `seed` and `pairs` are as for
    `persistcal.evaluation.significance.replicate_metrics`.
    """
    predictions = artifacts.read(predictions_path, artifacts.PREDICTIONS)
    if predictions.empty:
        log.warning("%s is empty: there is nothing to resample", predictions_path)
        for path, table in (
            (replicates_path, artifacts.REPLICATES),
            (intervals_path, artifacts.INTERVALS),
        ):
            artifacts.write(artifacts.empty(table), path, table)
        return
    how: dict[str, Any] = {
        "min_contrast": min_contrast,
        "n_replicates": n_replicates,
        "seed": seed,
        "pairs": pairs,
    }
    replicates = replicate_metrics(predictions, checkpoints, conditionings=conditioning, **how)
    drawn = digest_of_draws(predictions, checkpoints, **how)
    artifacts.write(to_table(replicates, drawn), replicates_path, artifacts.REPLICATES)
    rows = intervals(replicates).assign(model=model, dataset=dataset)
    artifacts.write(rows, intervals_path, artifacts.INTERVALS)
    log.info("%d replicates of %d metrics", n_replicates, len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    settings = dict(snakemake.params.items())
    settings.pop("code")
    resample_metrics(
        snakemake.input.predictions,
        snakemake.output.replicates,
        snakemake.output.intervals,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        **settings,
    )

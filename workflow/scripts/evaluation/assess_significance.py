"""Test the best estimator of each comparison against the others by a paired bootstrap."""

import logging
from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.evaluation.conditioning import Conditioning
from persistcal.evaluation.significance import compare_blocks, intervals, replicate_metrics
from persistcal.logs import log_to
from persistcal.report.layout import named_blocks

log = logging.getLogger(__name__)


def assess_significance(
    predictions_paths: Sequence[str],
    significance_path: str,
    intervals_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    blocks: Sequence[Sequence[Sequence[str]]],
    conditioning: Sequence[Conditioning],
    n_replicates: int,
    seed: int,
) -> None:
    """Write the tests of all `blocks`, and an interval for each estimator's metrics.

    Parameters
    ----------
    predictions_paths : sequence of str
        Tables PREDICTIONS whose estimators are compared.
    significance_path, intervals_path : str
        Tables SIGNIFICANCE and INTERVALS.
    model, dataset : str
        What the predictions are of.
    blocks : sequence of sequence of (train_dataset, estimator)
        Estimators that some table compares.
    checkpoints, min_contrast, conditioning, n_replicates, seed
        See `persistcal.evaluation.significance.replicate_metrics`.
    """
    predictions = pd.concat(
        artifacts.read(path, artifacts.PREDICTIONS) for path in predictions_paths
    )
    if predictions.empty:
        log.warning("There are no predictions, so there is nothing to test")
        artifacts.write(
            artifacts.empty(artifacts.SIGNIFICANCE), significance_path, artifacts.SIGNIFICANCE
        )
        artifacts.write(
            artifacts.empty(artifacts.INTERVALS), intervals_path, artifacts.INTERVALS
        )
        return
    replicates = replicate_metrics(
        predictions,
        checkpoints,
        min_contrast=min_contrast,
        n_replicates=n_replicates,
        seed=seed,
        conditionings=conditioning,
    )
    compared = [[(train, estimator) for train, estimator in block] for block in blocks]
    tests = compare_blocks(replicates, named_blocks(compared, replicates.estimators, dataset))
    owner = {"model": model, "dataset": dataset}
    artifacts.write(tests.assign(**owner), significance_path, artifacts.SIGNIFICANCE)
    artifacts.write(intervals(replicates).assign(**owner), intervals_path, artifacts.INTERVALS)
    log.info("%d tests, %d of them significant", len(tests), tests["significant"].sum())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    assess_significance(
        snakemake.input.predictions,
        snakemake.output.significance,
        snakemake.output.intervals,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        blocks=snakemake.params.blocks,
        conditioning=snakemake.params.conditioning,
        n_replicates=snakemake.params.n_replicates,
        seed=snakemake.params.seed,
    )

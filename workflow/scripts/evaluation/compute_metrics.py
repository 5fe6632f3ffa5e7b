"""Compute every metric of every estimator, and the contrast sets."""

import logging
from collections.abc import Sequence

from persistcal import artifacts
from persistcal.evaluation.evaluate import evaluate
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def compute_metrics(
    predictions_path: str,
    metrics_path: str,
    contrast_sets_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
) -> None:
    """Evaluate the predictions of one model on one dataset.

    Parameters
    ----------
    predictions_path : str
        Table `persistcal.artifacts.PREDICTIONS`.
    metrics_path, contrast_sets_path : str
        Tables METRICS and CONTRAST_SETS.
    model, dataset : str
        What the predictions are of.
    checkpoints : sequence of str
        Evaluation checkpoints in order.
    min_contrast : int
        Smaller contrast sets are dropped.
    """
    predictions = artifacts.read(predictions_path, artifacts.PREDICTIONS)
    owner = {"model": model, "dataset": dataset}
    if predictions.empty:
        log.warning("%s is empty: there is nothing to evaluate", predictions_path)
        artifacts.write(artifacts.empty(artifacts.METRICS), metrics_path, artifacts.METRICS)
        artifacts.write(
            artifacts.empty(artifacts.CONTRAST_SETS),
            contrast_sets_path,
            artifacts.CONTRAST_SETS,
        )
        return
    try:
        metrics, contrast_sets = evaluate(predictions, checkpoints, min_contrast=min_contrast)
    except ValueError as error:
        raise ValueError(f"{predictions_path}: {error}") from error
    artifacts.write(metrics.assign(**owner), metrics_path, artifacts.METRICS)
    artifacts.write(contrast_sets.assign(**owner), contrast_sets_path, artifacts.CONTRAST_SETS)
    log.info("%d metrics, %d contrast sets kept", len(metrics), contrast_sets["kept"].sum())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compute_metrics(
        snakemake.input.predictions,
        snakemake.output.metrics,
        snakemake.output.contrast_sets,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
    )

"""Compute every metric of an estimator."""

import logging
from collections.abc import Sequence

from persistcal import artifacts
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.evaluate import evaluate
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def compute_metrics(
    predictions_path: str,
    metrics_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    pairs: Pairs,
) -> None:
    """Write the METRICS of the PREDICTIONS of one model on one dataset."""
    predictions = artifacts.read(predictions_path, artifacts.PREDICTIONS)
    if predictions.empty:
        log.warning("%s is empty: there is nothing to evaluate", predictions_path)
        artifacts.write(artifacts.empty(artifacts.METRICS), metrics_path, artifacts.METRICS)
        return
    try:
        metrics = evaluate(predictions, checkpoints, min_contrast=min_contrast, pairs=pairs)
    except ValueError as error:
        raise ValueError(f"{predictions_path}: {error}") from error
    rows = metrics.assign(model=model, dataset=dataset)
    artifacts.write(rows, metrics_path, artifacts.METRICS)
    log.info("%d metrics", len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compute_metrics(
        snakemake.input.predictions,
        snakemake.output.metrics,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        pairs=snakemake.params.pairs,
    )

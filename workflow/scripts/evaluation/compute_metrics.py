"""Compute every metric of an estimator."""

import logging
from collections.abc import Sequence

from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.evaluate import evaluate
from persistcal.store.artifacts import METRICS, Metrics, Predictions, empty
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def compute_metrics(
    predictions: Predictions, *, checkpoints: Sequence[str], min_contrast: int, pairs: Pairs
) -> Metrics:
    """Return the metrics of one model's predictions on one dataset."""
    if predictions.empty:
        log.warning("There are no predictions, so nothing to evaluate")
        return empty(METRICS)
    return evaluate(predictions, checkpoints, min_contrast=min_contrast, pairs=pairs)


if __name__ == "__main__":
    run(compute_metrics, snakemake)

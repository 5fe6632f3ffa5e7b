"""Compute every metric of an estimator."""

from persistcal.evaluation.contrast import CONDITIONINGS, Conditioning, Pairs
from persistcal.evaluation.evaluate import evaluate
from persistcal.store.artifacts import METRICS, Metrics, Predictions, empty
from persistcal.store.jobs import log, run


def compute_metrics(
    predictions: Predictions,
    *,
    checkpoints: list[str],
    min_contrast: int,
    pairs: Pairs,
    conditioning: list[Conditioning],
) -> Metrics:
    """Return the metrics of one model's predictions on one dataset.

    They have the `conditioning` of the tests, and by odds and fitted in any case.
    """
    if predictions.empty:
        log.warning("There are no predictions, so nothing to evaluate")
        return empty(METRICS)
    return evaluate(
        predictions,
        checkpoints,
        min_contrast=min_contrast,
        pairs=pairs,
        conditionings=list(dict.fromkeys([*CONDITIONINGS, *conditioning])),
    )


if __name__ == "__main__":
    run(compute_metrics, snakemake)

"""Evaluate an estimator: metrics, intervals, and replicates for its tests."""

from persistcal.evaluation import pipeline
from persistcal.evaluation.aligned import align
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import ContrastMembers, Predictions
from persistcal.store.jobs import log, run


def evaluate_estimator(
    predictions: Predictions,
    contrast_sets: ContrastMembers,
    *,
    checkpoints: list[str],
    settings: EvaluationSettings,
) -> pipeline.EstimatorResult:
    """Return the tables of one model's predictions on one dataset."""
    if predictions.empty:
        return pipeline.nothing_to_evaluate()
    data = align(predictions, checkpoints, settings, members=contrast_sets).warned()
    tables = pipeline.evaluate_estimators(data, settings)
    log.info("%d replicates of %d metrics", settings.n_replicates, len(tables.intervals))
    return tables


if __name__ == "__main__":
    run(evaluate_estimator, snakemake)

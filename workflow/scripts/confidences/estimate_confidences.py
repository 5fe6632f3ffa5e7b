"""Let an estimator rate the predictions of all evaluated checkpoints."""

from persistcal.confidence.estimate import (
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    join_predictions,
)
from persistcal.store.artifacts import Predictions
from persistcal.store.jobs import run


def estimate_confidences(
    tables: AnswerTables, *, estimation: Estimation, threads: int
) -> Predictions:
    """Return the test predictions with the confidences of an estimator."""
    confidences = estimate(estimation, tables, threads=threads)
    asked = tables.predictions(estimation.evaluation, "test")
    return join_predictions(asked, confidences[RATED], estimation.estimator)


if __name__ == "__main__":
    run(estimate_confidences, snakemake)

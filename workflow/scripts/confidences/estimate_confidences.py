"""Let an estimator rate the predictions of all evaluated checkpoints."""

from persistcal.confidence.estimate import (
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    join_predictions,
)
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.artifacts import Predictions, Verified
from persistcal.store.jobs import run


def estimate_confidences(
    tables: AnswerTables,
    verified: Verified | None = None,
    checkpoints: list[Checkpoint] | None = None,
    entailment_model: str = "",
    *,
    estimation: Estimation,
    threads: int,
) -> Predictions:
    """Return the test predictions with the confidences of an estimator.

    `checkpoints` are the records of the checkpoints that the estimator reads, and
    `entailment_model` is the record of the model that compares answers.
    """
    confidences = estimate(
        estimation,
        tables,
        verified=verified,
        records=checkpoints,
        entailment_model=entailment_model,
        threads=threads,
    )
    asked = tables.predictions(estimation.evaluation, "test")
    return join_predictions(asked, confidences[RATED], estimation.estimator)


if __name__ == "__main__":
    run(estimate_confidences, snakemake)

"""Let an estimator rate the predictions of all evaluated checkpoints."""

from persistcal.confidence.estimate import Estimation, Tables, estimate
from persistcal.confidence.gathering import RATED, join_predictions
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.artifacts import (
    Answers,
    Beams,
    Clusters,
    Predictions,
    Questions,
    Verified,
)
from persistcal.store.jobs import Job, run


def estimate_confidences(
    questions: Questions,
    beams: Beams,
    clusters: Clusters,
    answers: Answers,
    verified: Verified | None = None,
    checkpoints: list[Checkpoint] | None = None,
    *,
    estimation: Estimation,
    job: Job,
) -> Predictions:
    """Return the test predictions with the confidences of an estimator.

    `checkpoints` are the records of the checkpoints that it reads.
    """
    tables = Tables(questions, beams, clusters, answers, verified)
    model = str(job.inputs.get("entailment_model", ""))
    confidences = estimate(
        estimation, tables, records=checkpoints, entailment_model=model, threads=job.threads
    )
    asked = tables.predictions(estimation.evaluation, "test")
    return join_predictions(asked, confidences[RATED], estimation.estimator)


if __name__ == "__main__":
    run(estimate_confidences, snakemake)

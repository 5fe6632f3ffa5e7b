"""Let an estimator rate the predictions of one checkpoint."""

from persistcal.confidence.estimate import Estimation, Tables, estimate
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.artifacts import (
    SCORES,
    Answers,
    Beams,
    Clusters,
    Questions,
    Scores,
    Verified,
)
from persistcal.store.jobs import Job, run


def rate_at_checkpoint(
    questions: Questions,
    beams: Beams,
    clusters: Clusters,
    answers: Answers,
    verified: Verified | None = None,
    checkpoints: list[Checkpoint] | None = None,
    *,
    estimation: Estimation,
    job: Job,
) -> Scores:
    """Return the predictions of a split with the confidences of an estimator.

    `checkpoints` are the records of the checkpoints that it reads.
    """
    tables = Tables(questions, beams, clusters, answers, verified)
    model = str(job.inputs.get("entailment_model", ""))
    scores = estimate(
        estimation, tables, records=checkpoints, entailment_model=model, threads=job.threads
    )
    scores = scores.rename(columns={"checkpoint": "answers_of"})
    return scores.assign(recipe=estimation.estimator, trained_on="")[SCORES.schema.names]


if __name__ == "__main__":
    run(rate_at_checkpoint, snakemake)

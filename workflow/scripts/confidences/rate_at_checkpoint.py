"""Let an estimator rate the predictions of one checkpoint."""

from persistcal.confidence.estimate import AnswerTables, Estimation, estimate
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.artifacts import SCORES, Scores, Verified
from persistcal.store.jobs import run


def rate_at_checkpoint(
    tables: AnswerTables,
    verified: Verified | None = None,
    checkpoints: list[Checkpoint] | None = None,
    entailment_model: str = "",
    *,
    estimation: Estimation,
    threads: int,
) -> Scores:
    """Return the predictions of a split with the confidences of an estimator.

    `checkpoints` are the records of the checkpoints that the estimator reads, and
    `entailment_model` is the record of the model that compares answers.
    """
    scores = estimate(
        estimation,
        tables,
        verified=verified,
        records=checkpoints,
        entailment_model=entailment_model,
        threads=threads,
    )
    scores = scores.rename(columns={"checkpoint": "answers_of"})
    return scores.assign(recipe=estimation.estimator, trained_on="")[SCORES.schema.names]


if __name__ == "__main__":
    run(rate_at_checkpoint, snakemake)

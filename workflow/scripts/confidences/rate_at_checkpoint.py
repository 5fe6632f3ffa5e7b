"""Let an estimator rate the predictions of one checkpoint."""

from persistcal.confidence.estimate import AnswerTables, Estimation, estimate
from persistcal.store.artifacts import SCORES, Scores
from persistcal.store.jobs import run


def rate_at_checkpoint(tables: AnswerTables, *, estimation: Estimation, threads: int) -> Scores:
    """Return the predictions of a split with the confidences of an estimator."""
    scores = estimate(estimation, tables, threads=threads)
    scores = scores.rename(columns={"checkpoint": "answers_of"})
    return scores.assign(recipe=estimation.estimator, trained_on="")[SCORES.schema.names]


if __name__ == "__main__":
    run(rate_at_checkpoint, snakemake)

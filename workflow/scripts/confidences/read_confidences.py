"""Read the confidences that were said in words about the predictions of all checkpoints."""

from persistcal.confidence.estimate import (
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    join_predictions,
)
from persistcal.store.artifacts import Predictions, Replies, Unsaid
from persistcal.store.jobs import run


def read_confidences(
    tables: AnswerTables, replies: Replies | None = None, *, estimation: Estimation
) -> tuple[Predictions, Unsaid]:
    """Return the test predictions with these confidences, and how many have none.

    `replies` are those of the checkpoints that the estimator asks; confidences may also have
    come with the answers.
    """
    confidences = estimate(estimation, tables, replies=replies)
    asked = tables.predictions(estimation.evaluation, "test")
    of_each = confidences.groupby("checkpoint", sort=False)["unsaid"]
    counts = of_each.agg(answers="size", unsaid="sum").reset_index()
    return join_predictions(asked, confidences[RATED], estimation.estimator), counts


if __name__ == "__main__":
    run(read_confidences, snakemake)

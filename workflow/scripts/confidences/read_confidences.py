"""Read stated confidences in the predictions of all checkpoints from replies in words."""

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
    """Return the test predictions with these confidences, and counts of missing ones.

    `replies` come from the checkpoints that the estimator asks. Confidences can also come with
    the answers.
    """
    confidences = estimate(estimation, tables, replies=replies)
    asked = tables.predictions(estimation.evaluation, "test")
    of_each = confidences.groupby("checkpoint", sort=False)["unsaid"]
    counts = of_each.agg(answers="size", unsaid="sum").reset_index()
    return join_predictions(asked, confidences[RATED], estimation.estimator), counts


if __name__ == "__main__":
    run(read_confidences, snakemake)

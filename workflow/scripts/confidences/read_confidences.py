"""Read stated confidences in the predictions of all checkpoints from replies in words."""

from persistcal.confidence.estimate import (
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    join_predictions,
)
from persistcal.store.artifacts import Predictions, Unsaid
from persistcal.store.jobs import run


def read_confidences(
    tables: AnswerTables, *, estimation: Estimation
) -> tuple[Predictions, Unsaid]:
    """Return the test predictions with these confidences, and counts of missing ones.

    Confidences come from replies of the checkpoints that the estimator asks, or with answers.
    """
    confidences = estimate(estimation, tables)
    asked = tables.predictions(estimation.evaluation, "test")
    of_each = confidences.groupby("checkpoint", sort=False)["unsaid"]
    counts = of_each.agg(answers="size", unsaid="sum").reset_index()
    return join_predictions(asked, confidences[RATED], estimation.estimator), counts


if __name__ == "__main__":
    run(read_confidences, snakemake)

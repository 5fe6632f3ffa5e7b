"""Read stated confidences in the answers of all checkpoints from replies in words."""

from persistcal.answers.clusters import RATED
from persistcal.confidence.estimate import AnswerTables, Estimation, estimate_asks
from persistcal.store.artifacts import Confidences, Unsaid
from persistcal.store.jobs import run


def read_confidences(
    tables: AnswerTables, *, estimation: Estimation
) -> tuple[Confidences, Unsaid]:
    """Return these confidences in the test answers of each ask, and counts of missing ones.

    Confidences come from replies of the checkpoints that the estimator asks, or with answers.
    """
    confidences = estimate_asks(estimation, tables)
    usual = confidences[confidences["split"] == "test"]
    of_each = usual.groupby("checkpoint", sort=False)["unsaid"]
    counts = of_each.agg(answers="size", unsaid="sum").reset_index()
    return confidences[["split", *RATED]], counts


if __name__ == "__main__":
    run(read_confidences, snakemake)

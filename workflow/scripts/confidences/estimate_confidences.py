"""Let an estimator rate the answers of all evaluated checkpoints."""

from persistcal.answers.clusters import RATED
from persistcal.confidence.estimate import AnswerTables, Estimation, estimate_asks
from persistcal.store.artifacts import Confidences
from persistcal.store.jobs import run


def estimate_confidences(
    tables: AnswerTables, *, estimation: Estimation, threads: int
) -> Confidences:
    """Return the confidences of an estimator in the test answers of each ask."""
    return estimate_asks(estimation, tables, threads=threads)[["split", *RATED]]


if __name__ == "__main__":
    run(estimate_confidences, snakemake)

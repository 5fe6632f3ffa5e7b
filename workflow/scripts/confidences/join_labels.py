"""Join an estimator's confidences with the labels of the answers."""

from persistcal.confidence.predictions import RATED, join_predictions
from persistcal.store.artifacts import Answers, Confidences, Predictions
from persistcal.store.jobs import log, run


def join_labels(
    confidences: Confidences, answers: Answers, *, estimator: str, copies: bool
) -> Predictions:
    """Return the labelled test answers with the confidences of `estimator`.

    `copies` is True for confidences of another checkpoint in its own answers.
    """
    rated = confidences[RATED]
    predictions = join_predictions(answers, rated, estimator, copies=copies)
    log.info("%d predictions of %d answers", len(predictions), len(answers))
    return predictions


if __name__ == "__main__":
    run(join_labels, snakemake)

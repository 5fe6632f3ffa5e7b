"""Gather an estimator's scores at each checkpoint, and calibrate them if it asks for it."""

from persistcal.confidence.estimate import calibrate_runs, gather_scores, join_predictions
from persistcal.store.artifacts import Answers, Predictions, Scores
from persistcal.store.jobs import log, run


def gather_confidences(
    scores: Scores,
    answers: Answers,
    *,
    estimator: str,
    evaluation: list[str],
    uses: list[dict[str, str]],
    copies: bool,
    posthoc: str | None = None,
) -> Predictions:
    """Return the predictions of `evaluation` checkpoints with the confidences of `estimator`.

    `uses` selects the scores for each checkpoint. `copies` is True for confidences of another
    checkpoint in its own answers. `posthoc` is fitted on the answers of other checkpoints.
    """
    confidences = gather_scores(scores, uses)
    if posthoc:
        train = answers[~answers["checkpoint"].isin(evaluation) & (answers["split"] == "train")]
        earlier = train["checkpoint"].unique()
        tables = [
            {"checkpoint": c, "scored_at": c, "answers": "train", "answers_of": c}
            for c in earlier
        ]
        correct = train[["checkpoint", "question_id", "correct"]]
        labelled = gather_scores(scores, tables).merge(correct, validate="many_to_one")
        confidences = calibrate_runs(confidences, labelled, posthoc, estimator)
        log.info("%s fitted on %d answers of %s", posthoc, len(labelled), ", ".join(earlier))
    asked = answers[answers["checkpoint"].isin(evaluation) & (answers["split"] == "test")]
    predictions = join_predictions(asked, confidences, estimator, copies=copies)
    log.info("%d predictions of %d answers", len(predictions), len(asked))
    return predictions


if __name__ == "__main__":
    run(gather_confidences, snakemake)

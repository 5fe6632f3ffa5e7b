"""Gather an estimator's scores at each checkpoint, and calibrate them if it asks for it."""

from persistcal.confidence.estimate import calibrate_runs, gather_scores
from persistcal.store.artifacts import Answers, Confidences, Scores
from persistcal.store.jobs import log, run


def gather_confidences(
    scores: Scores,
    answers: Answers | None = None,
    *,
    estimator: str,
    uses: list[dict[str, str]],
    posthoc: str | None = None,
) -> Confidences:
    """Return the confidences of `estimator` in the answers of the evaluated checkpoints.

    `uses` selects the scores for each of them. `posthoc` is fitted on the labelled `answers`
    of the earlier checkpoints.
    """
    confidences = gather_scores(scores, uses)
    if posthoc and answers is not None:
        train = answers[answers["split"] == "train"]
        earlier = train["checkpoint"].unique()
        tables = [
            {"checkpoint": c, "scored_at": c, "answers": "train", "answers_of": c}
            for c in earlier
        ]
        correct = train[["checkpoint", "question_id", "correct"]]
        labelled = gather_scores(scores, tables).merge(correct, validate="many_to_one")
        confidences = calibrate_runs(confidences, labelled, posthoc, estimator)
        log.info("%s fitted on %d answers of %s", posthoc, len(labelled), ", ".join(earlier))
    log.info("%d confidences", len(confidences))
    return confidences.assign(split="test")


if __name__ == "__main__":
    run(gather_confidences, snakemake)

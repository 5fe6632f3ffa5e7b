"""Gather an estimator's scores at each checkpoint, and calibrate them if it asks for it."""

import pandas as pd

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

    `uses` selects the scores for each of them and each split, which is an ask of its own.
    `posthoc` is fitted on the labelled `answers` of the earlier checkpoints.
    """
    splits = dict.fromkeys(use["split"] for use in uses)
    gathered = {
        split: gather_scores(scores, [use for use in uses if use["split"] == split])
        for split in splits
    }
    if posthoc and answers is not None:
        train = answers[answers["split"] == "train"]
        earlier = train["checkpoint"].unique()
        tables = [
            {"checkpoint": c, "scored_at": c, "answers": "train", "answers_of": c}
            for c in earlier
        ]
        correct = train[["checkpoint", "question_id", "correct"]]
        labelled = gather_scores(scores, tables).merge(correct, validate="many_to_one")
        gathered = {
            split: calibrate_runs(confidences, labelled, posthoc, estimator)
            for split, confidences in gathered.items()
        }
        log.info("%s fitted on %d answers of %s", posthoc, len(labelled), ", ".join(earlier))
    asks = [confidences.assign(split=split) for split, confidences in gathered.items()]
    log.info("%d confidences in %d splits", sum(map(len, asks)), len(asks))
    return pd.concat(asks)


if __name__ == "__main__":
    run(gather_confidences, snakemake)

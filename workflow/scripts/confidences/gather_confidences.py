"""Gather an estimator's scores at each checkpoint, and calibrate them if it asks for it."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.confidence.gathering import calibrate_runs, gather_scores, join_predictions
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def gather_confidences(
    scores_paths: Sequence[str],
    answers_paths: Sequence[str],
    predictions_path: str,
    *,
    estimator: str,
    checkpoints: Sequence[str],
    evaluation: Sequence[str],
    scores_read: Sequence[Mapping[str, str]],
    uses: Sequence[Mapping[str, str]],
    copies: bool,
    posthoc: str | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the predictions of `evaluation` checkpoints with the confidences of `estimator`.

    `scores_read` says what the tables SCORES at `scores_paths` hold, and `uses` which of
    them are the confidences at which checkpoint (see `gather_scores`). The tables ANSWERS
    are those of `checkpoints`; the others than `evaluation` are what `posthoc` is fitted on.
    """
    scores = {
        (about["checkpoint"], about["answers"]): artifacts.read(path, artifacts.SCORES)
        for about, path in zip(scores_read, scores_paths, strict=True)
    }
    answers = pd.concat(
        artifacts.read(path, artifacts.ANSWERS).assign(checkpoint=name)
        for name, path in zip(checkpoints, answers_paths, strict=True)
    )
    confidences = gather_scores(scores, uses)
    if posthoc:
        earlier = [name for name in checkpoints if name not in evaluation]
        own = [
            {"checkpoint": c, "scored_at": c, "answers": "train", "answers_of": c}
            for c in earlier
        ]
        train = answers.loc[
            answers["split"] == "train", ["checkpoint", "question_id", "correct"]
        ]
        labelled = gather_scores(scores, own).merge(train, validate="many_to_one")
        confidences = calibrate_runs(confidences, labelled, posthoc, estimator)
        log.info("%s fitted on %d answers of %s", posthoc, len(labelled), ", ".join(earlier))
    asked = answers[answers["checkpoint"].isin(evaluation) & (answers["split"] == "test")]
    predictions = join_predictions(asked, confidences, estimator, copies=copies)
    artifacts.write(predictions, predictions_path, artifacts.PREDICTIONS, about=about)
    log.info("%d predictions of %d answers", len(predictions), len(asked))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    settings = dict(snakemake.params.items())
    settings.pop("code")
    gather_confidences(
        snakemake.input.scores,
        snakemake.input.answers,
        snakemake.output.predictions,
        estimator=snakemake.wildcards.estimator,
        about=dict(snakemake.wildcards.items()),
        **settings,
    )

"""Join answers, correctness and every estimator's confidence: all that evaluation reads."""

import logging
from typing import Any

import pandas as pd

from persistcal import artifacts
from persistcal.answers.predictions import gather_scores, join_predictions, top_answers
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def assemble_predictions(
    questions_path: str,
    clusters_paths: list[str],
    labels_paths: list[str],
    scores_paths: list[str],
    confidences_paths: list[str],
    predictions_path: str,
    *,
    checkpoints: list[str],
    scored_at: list[str],
    scored: list[dict[str, Any]],
    estimators: list[str],
) -> None:
    """Write the predictions of one model on one dataset.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    clusters_paths, labels_paths : list of str
        Tables CLUSTERS and LABELS of the evaluation checkpoints `checkpoints`.
    scores_paths : list of str
        Tables SCORES of the checkpoints `scored_at`.
    confidences_paths : list of str
        Tables CONFIDENCES of the `estimators` that are scripts.
    predictions_path : str
        Table PREDICTIONS, for the test questions that a checkpoint answered.
    checkpoints, scored_at, estimators : list of str
        Names that belong to the paths above.
    scored : list of dict
        Where adapter estimators' scores are, see `gather_scores`.
    """
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    answers = pd.concat(
        top_answers(
            questions,
            artifacts.read(clusters_path, artifacts.CLUSTERS),
            artifacts.read(labels_path, artifacts.LABELS),
        ).assign(checkpoint=checkpoint)
        for checkpoint, clusters_path, labels_path in zip(
            checkpoints, clusters_paths, labels_paths, strict=True
        )
    )
    scores = {
        checkpoint: artifacts.read(path, artifacts.SCORES)
        for checkpoint, path in zip(scored_at, scores_paths, strict=True)
    }
    confidences = [
        artifacts.read(path, artifacts.CONFIDENCES).assign(estimator=estimator)
        for estimator, path in zip(estimators, confidences_paths, strict=True)
    ]
    predictions = join_predictions(
        answers,
        pd.concat([*confidences, gather_scores(scores, scored)]),
        copies=[row["estimator"] for row in scored if row["answers_of"] != row["checkpoint"]],
    )
    artifacts.write(predictions, predictions_path, artifacts.PREDICTIONS)
    accuracy = answers.groupby("checkpoint", sort=False)["correct"].mean()
    log.info("%d predictions; accuracy %s", len(predictions), accuracy.round(3).to_dict())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    assemble_predictions(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.input.get("scores", []),
        snakemake.input.get("confidences", []),
        snakemake.output.predictions,
        checkpoints=snakemake.params.checkpoints,
        scored_at=snakemake.params.scored_at,
        scored=snakemake.params.scored,
        estimators=snakemake.params.estimators,
    )

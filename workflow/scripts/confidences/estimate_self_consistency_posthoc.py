"""Self-consistency, calibrated on the earlier checkpoints' answers to the train split."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.answers.predictions import top_answers
from persistcal.confidence.posthoc import apply, fit_isotonic
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def estimate_self_consistency_posthoc(
    questions_path: str,
    clusters_paths: Sequence[str],
    labels_paths: Sequence[str],
    confidences_path: str,
    *,
    checkpoints: Sequence[str],
    earlier: Sequence[str],
    evaluation: Sequence[str],
) -> None:
    """Write isotonic self-consistency of the evaluation checkpoints.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    clusters_paths, labels_paths : sequence of str
        Tables CLUSTERS and LABELS of `checkpoints`.
    confidences_path : str
        Table CONFIDENCES.
    checkpoints : sequence of str
        Names that belong to the paths.
    earlier, evaluation : sequence of str
        Which of them to fit on, pooled, and which to apply to.

    Notes
    -----
    Paper, appendix "Self-Consistency Implementation" and the caption of the
    unabridged main table.
    """
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    read = {
        checkpoint: (
            artifacts.read(clusters_path, artifacts.CLUSTERS),
            artifacts.read(labels_path, artifacts.LABELS),
        )
        for checkpoint, clusters_path, labels_path in zip(
            checkpoints, clusters_paths, labels_paths, strict=True
        )
    }
    train = pd.concat(top_answers(questions, *read[name], split="train") for name in earlier)
    calibrator = fit_isotonic(train["probability"], train["correct"])
    log.info("Fitted on %d answers of %s", len(train), ", ".join(earlier))

    dataset = Path(confidences_path).parent.name
    parts = []
    for checkpoint in evaluation:
        test = top_answers(questions, *read[checkpoint])
        test = test.assign(confidence=apply(calibrator, test["probability"]))
        parts.append(test.assign(checkpoint=checkpoint, train_dataset=dataset, seed=0))
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_self_consistency_posthoc(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
        earlier=snakemake.params.earlier,
        evaluation=snakemake.params.evaluation,
    )

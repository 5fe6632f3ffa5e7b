"""An external verifier, calibrated on the earlier checkpoints' answers to the train split."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.answers.predictions import top_answers
from persistcal.confidence.posthoc import apply, fit_isotonic
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def estimate_gcm_posthoc(
    questions_path: str,
    clusters_paths: Sequence[str],
    labels_paths: Sequence[str],
    verdicts_path: str,
    confidences_path: str,
    *,
    checkpoints: Sequence[str],
    earlier: Sequence[str],
    evaluation: Sequence[str],
) -> None:
    """Write the isotonic verifier confidence of the evaluation checkpoints.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    clusters_paths, labels_paths : sequence of str
        Tables CLUSTERS and LABELS of `checkpoints`.
    verdicts_path : str
        Table VERDICTS of the same checkpoints.
    confidences_path : str
        Table CONFIDENCES.
    checkpoints : sequence of str
        Names that belong to the paths.
    earlier, evaluation : sequence of str
        Which of them to fit on, pooled, and which to apply to.

    Notes
    -----
    Paper, section "Comparison to Generalized Correctness Models".
    """
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    verdicts = artifacts.read(verdicts_path, artifacts.VERDICTS)
    parts = []
    for name, clusters, labels in zip(checkpoints, clusters_paths, labels_paths, strict=True):
        if name in earlier:
            read = (
                artifacts.read(clusters, artifacts.CLUSTERS),
                artifacts.read(labels, artifacts.LABELS),
            )
            parts.append(top_answers(questions, *read, split="train").assign(checkpoint=name))
    train = pd.concat(parts).merge(
        verdicts, on=["checkpoint", "question_id"], validate="one_to_one"
    )
    calibrator = fit_isotonic(train["confidence"], train["correct"])
    log.info("Fitted on %d answers of %s", len(train), ", ".join(earlier))

    test = verdicts[verdicts["checkpoint"].isin(evaluation)]
    confidences = test.assign(
        train_dataset=Path(confidences_path).parent.name,
        seed=0,
        confidence=apply(calibrator, test["confidence"]),
    )
    artifacts.write(
        confidences[artifacts.CONFIDENCES.schema.names], confidences_path, artifacts.CONFIDENCES
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_gcm_posthoc(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.input.verdicts,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
        earlier=snakemake.params.earlier,
        evaluation=snakemake.params.evaluation,
    )

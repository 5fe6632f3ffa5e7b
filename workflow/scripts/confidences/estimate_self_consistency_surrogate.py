"""Confidence of an answer: the probability that the last earlier checkpoint gives it."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal import artifacts
from persistcal.answers.equivalence_backends import open_equivalence
from persistcal.confidence.surrogate import surrogate_confidences
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def estimate_self_consistency_surrogate(
    questions_path: str,
    clusters_paths: Sequence[str],
    confidences_path: str,
    model_path: str = "",
    *,
    checkpoints: Sequence[str],
    earlier: Sequence[str],
    evaluation: Sequence[str],
    equivalence: Mapping[str, Any],
    threads: int = 1,
) -> None:
    """Write the last earlier checkpoint's probability of each later prediction.

    Parameters
    ----------
    questions_path, clusters_paths : str, sequence of str
        Tables QUESTIONS, and CLUSTERS of `checkpoints`.
    confidences_path : str
        Table CONFIDENCES, of the predictions for test questions.
    checkpoints, earlier, evaluation : sequence of str
        The last earlier one is the surrogate for the evaluation checkpoints.
    model_path, equivalence, threads : str, mapping, int
        As for `cluster_answers`.
    """
    dataset = Path(confidences_path).parent.name
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    asked = questions.loc[(questions["split"] == "test") & ~questions["excluded"]]
    paths = dict(zip(checkpoints, clusters_paths, strict=True))
    candidates = artifacts.read(paths[earlier[-1]], artifacts.CLUSTERS)
    clusters = pd.concat(
        artifacts.read(paths[name], artifacts.CLUSTERS).assign(checkpoint=name)
        for name in evaluation
    )
    predictions = clusters.loc[
        clusters["cluster"] == 0, ["checkpoint", "question_id", "answer"]
    ].merge(asked[["question_id", "question"]])
    with open_equivalence(
        equivalence,
        model_path,
        dataset,
        questions=asked["question"],
        answers={*predictions["answer"], *candidates["answer"]},
        threads=threads,
    ) as equivalent:
        confidence = surrogate_confidences(predictions, candidates, equivalent)
    log.info("%d predictions; %d with confidence 0", len(confidence), (confidence == 0).sum())
    table = predictions.assign(train_dataset=dataset, seed=0, confidence=confidence)
    artifacts.write(
        table[artifacts.CONFIDENCES.schema.names], confidences_path, artifacts.CONFIDENCES
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_self_consistency_surrogate(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.output.confidences,
        snakemake.input.get("entailment_model", ""),
        checkpoints=snakemake.params.checkpoints,
        earlier=snakemake.params.earlier,
        evaluation=snakemake.params.evaluation,
        equivalence=snakemake.params.equivalence,
        threads=snakemake.threads,
    )

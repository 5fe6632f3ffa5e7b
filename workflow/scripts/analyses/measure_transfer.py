"""Measure how well adapters of some checkpoints rank the answers of all: AUCs."""

import logging
from collections.abc import Mapping, Sequence

from persistcal import artifacts
from persistcal.analyses.transfer import transfer_matrix
from persistcal.answers.predictions import top_answers
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def measure_transfer(
    questions_path: str,
    clusters_paths: Sequence[str],
    labels_paths: Sequence[str],
    scores_paths: Sequence[str],
    transfer_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    sets: Mapping[str, Sequence[str]],
) -> None:
    """Write the AUC of every adapter at every checkpoint to `transfer_path`.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    clusters_paths, labels_paths, scores_paths : sequence of str
        Tables CLUSTERS, LABELS and SCORES of each of `checkpoints`.
    transfer_path : str
        CSV of `persistcal.artifacts.TRANSFER`.
    model, dataset : str
        What the answers are of; the adapters were trained on the same dataset.
    checkpoints : sequence of str
        All checkpoints of the model, in order.
    sets : mapping
        For each recipe the names of its training sets.
    """
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    answers, scores = {}, {}
    paths = zip(checkpoints, clusters_paths, labels_paths, scores_paths, strict=True)
    for checkpoint, clusters, labels, scored in paths:
        answers[checkpoint] = top_answers(
            questions,
            artifacts.read(clusters, artifacts.CLUSTERS),
            artifacts.read(labels, artifacts.LABELS),
        )
        scores[checkpoint] = artifacts.read(scored, artifacts.SCORES)
    matrix = transfer_matrix(answers, scores, sets, train_dataset=dataset)
    matrix = matrix.assign(model=model, dataset=dataset)
    artifacts.write_csv(matrix, transfer_path, artifacts.TRANSFER)
    log.info("%d AUCs from %.3f to %.3f", len(matrix), matrix["auc"].min(), matrix["auc"].max())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    measure_transfer(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.input.scores,
        snakemake.output.transfer,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        sets=snakemake.params.sets,
    )

"""Measure how well adapters of some checkpoints rank the answers of all: AUCs."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.analyses.transfer import transfer_matrix
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def measure_transfer(
    answers_paths: Sequence[str],
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
    answers_paths : sequence of str
        Tables ANSWERS of each of `checkpoints`.
    scores_paths : sequence of str
        Tables SCORES of all of them with all recipes of `sets`.
    transfer_path : str
        CSV of `persistcal.artifacts.TRANSFER`.
    model, dataset : str
        What the answers are of; the adapters were trained on the same dataset.
    checkpoints : sequence of str
        All checkpoints of the model, in order.
    sets : mapping
        For each recipe the names of its training sets.
    """
    answers = {}
    for checkpoint, path in zip(checkpoints, answers_paths, strict=True):
        table = artifacts.read(path, artifacts.ANSWERS)
        answers[checkpoint] = table[table["split"] == "test"]
    scores = pd.concat(artifacts.read(path, artifacts.SCORES) for path in scores_paths)
    matrix = transfer_matrix(answers, scores, sets, train_dataset=dataset)
    matrix = matrix.assign(model=model, dataset=dataset)
    artifacts.write_csv(matrix, transfer_path, artifacts.TRANSFER)
    log.info("%d AUCs from %.3f to %.3f", len(matrix), matrix["auc"].min(), matrix["auc"].max())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    measure_transfer(
        snakemake.input.answers,
        snakemake.input.scores,
        snakemake.output.transfer,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        sets=snakemake.params.sets,
    )

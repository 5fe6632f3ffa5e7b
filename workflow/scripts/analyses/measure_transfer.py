"""Measure how well adapters of some checkpoints rank the answers of all: AUCs."""

import logging
from collections.abc import Mapping, Sequence

from persistcal.analyses.transfer import transfer_matrix
from persistcal.store.artifacts import Answers, Scores, Transfer
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def measure_transfer(
    answers: Answers,
    scores: Scores,
    *,
    dataset: str,
    checkpoints: Sequence[str],
    sets: Mapping[str, Sequence[str]],
) -> Transfer:
    """Return the AUC of every adapter at every checkpoint.

    Parameters
    ----------
    answers, scores : Answers, Scores
        Of all checkpoints, scored with all recipes of `sets`.
    dataset : str
        What the answers are to, and what the adapters were trained on.
    checkpoints : sequence of str
        All checkpoints of the model, in order.
    sets : mapping
        For each recipe the names of its training sets.
    """
    asked = answers[answers["split"] == "test"]
    by_checkpoint = {name: asked[asked["checkpoint"] == name] for name in checkpoints}
    matrix = transfer_matrix(by_checkpoint, scores, sets, train_dataset=dataset)
    log.info("%d AUCs from %.3f to %.3f", len(matrix), matrix["auc"].min(), matrix["auc"].max())
    return matrix


if __name__ == "__main__":
    run(measure_transfer, snakemake)

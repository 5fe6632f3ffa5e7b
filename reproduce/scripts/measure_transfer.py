"""Measure the AUC of adapters trained at one checkpoint and used at each."""

from persistcal.store.artifacts import Answers, Scores, Transfer
from persistcal.store.jobs import log, run
from reproduce.transfer import transfer_matrix


def measure_transfer(
    answers: Answers,
    scores: Scores,
    *,
    dataset: str,
    checkpoints: list[str],
    sets: dict[str, dict[str, list[str]]],
) -> Transfer:
    """Return the AUC of every adapter at every checkpoint.

    The answers to a `dataset` of all `checkpoints`, scored with the adapters of all recipes
    and training `sets` of the same dataset.
    """
    tests = answers[answers["split"] == "test"]
    by_checkpoint = {name: tests[tests["checkpoint"] == name] for name in checkpoints}
    matrix = transfer_matrix(by_checkpoint, scores, sets, train_dataset=dataset)
    log.info("%d AUCs from %.3f to %.3f", len(matrix), matrix["auc"].min(), matrix["auc"].max())
    return matrix


if __name__ == "__main__":
    run(measure_transfer, snakemake)

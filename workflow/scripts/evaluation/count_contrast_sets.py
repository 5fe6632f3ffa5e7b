"""Count the questions whose correctness changes between checkpoints."""

import logging
from collections.abc import Sequence

from persistcal import artifacts
from persistcal.evaluation.contrast import (
    Pairs,
    arrange_answers,
    choose_pairs,
    contrast_sets,
    describe_sets,
)
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def count_contrast_sets(
    answers_paths: Sequence[str],
    contrast_sets_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    pairs: Pairs,
) -> None:
    """Write the contrast sets of `checkpoints`, counted from their tables ANSWERS."""
    answers = {}
    for checkpoint, path in zip(checkpoints, answers_paths, strict=True):
        table = artifacts.read(path, artifacts.ANSWERS)
        answers[checkpoint] = table[table["split"] == "test"]
    correct, _ = arrange_answers(answers)
    chosen = choose_pairs(pairs, checkpoints)
    sets = describe_sets(
        contrast_sets(correct, min_contrast=min_contrast, pairs=chosen), checkpoints
    )
    rows = sets.assign(model=model, dataset=dataset)
    artifacts.write(rows, contrast_sets_path, artifacts.CONTRAST_SETS)
    log.info("%d contrast sets, %d of them kept", len(sets), sets["kept"].sum())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    count_contrast_sets(
        snakemake.input.answers,
        snakemake.output.contrast_sets,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        pairs=snakemake.params.pairs,
    )

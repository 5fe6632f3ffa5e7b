"""Test the best estimator of each comparison of a table against the others, in pairs."""

import pandas as pd

from persistcal.evaluation.replicates import from_table
from persistcal.evaluation.significance import compare_blocks
from persistcal.report.layout import named_blocks
from persistcal.store.artifacts import SIGNIFICANCE, Replicates, Significance, empty
from persistcal.store.jobs import log, run

Block = list[tuple[str, str]]  # (train_dataset, estimator)


def compare_table(
    replicates: Replicates, *, comparisons: list[tuple[str, str, list[Block]]]
) -> Significance:
    """Return the tests of all comparisons of a table: (model, dataset, blocks of estimators).

    Estimators without replicates are left out of a block.
    """
    parts = []
    for model, dataset, blocks in comparisons:
        is_part = (replicates["model"] == model) & (replicates["dataset"] == dataset)
        if not is_part.any():
            log.warning("%s on %s has no predictions, so nothing to test", model, dataset)
            continue
        paired = from_table(replicates[is_part])
        tests = compare_blocks(paired, named_blocks(blocks, paired.estimators, dataset))
        parts.append(tests.assign(model=model, dataset=dataset))
        counts = len(tests), tests["significant"].sum()
        log.info("%s, %s: %d tests, %d significant", model, dataset, *counts)
    return pd.concat(parts) if parts else empty(SIGNIFICANCE)


if __name__ == "__main__":
    run(compare_table, snakemake)

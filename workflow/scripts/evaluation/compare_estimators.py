"""Test the best estimator of each comparison of a table against the others, in pairs."""

import logging
from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.evaluation.replicates import from_table
from persistcal.evaluation.significance import compare_blocks
from persistcal.logs import log_to
from persistcal.report.layout import named_blocks

log = logging.getLogger(__name__)

Block = Sequence[Sequence[str]]  # of (train_dataset, estimator)


def compare_estimators(
    replicates_paths: Sequence[str],
    significance_path: str,
    *,
    replicated: Sequence[tuple[str, str, str]],
    comparisons: Sequence[tuple[str, str, Sequence[Block]]],
) -> None:
    """Write the tests of all `comparisons` to `significance_path`.

    Parameters
    ----------
    replicates_paths : sequence of str
        Tables REPLICATES.
    significance_path : str
        Table SIGNIFICANCE.
    replicated : sequence of (model, dataset, estimator)
        What each of `replicates_paths` is about.
    comparisons : sequence of (model, dataset, blocks)
        The estimators that a table compares; of those that are not among the
        replicates a block is tested without.
    """
    paths: dict[tuple[str, str], list[str]] = {}
    for (model, dataset, _), path in zip(replicated, replicates_paths, strict=True):
        paths.setdefault((model, dataset), []).append(path)
    parts = [artifacts.empty(artifacts.SIGNIFICANCE)]
    for model, dataset, blocks in comparisons:
        read = [artifacts.read(path, artifacts.REPLICATES) for path in paths[model, dataset]]
        table = pd.concat(read)
        if table.empty:
            log.warning("%s on %s has no predictions, so nothing to test", model, dataset)
            continue
        replicates = from_table(table)
        members = [[(train, estimator) for train, estimator in block] for block in blocks]
        named = named_blocks(members, replicates.estimators, dataset)
        tests = compare_blocks(replicates, named)
        parts.append(tests.assign(model=model, dataset=dataset))
        log.info(
            "%s, %s: %d tests, %d significant",
            model,
            dataset,
            len(tests),
            tests["significant"].sum(),
        )
    artifacts.write(pd.concat(parts[1:] or parts), significance_path, artifacts.SIGNIFICANCE)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compare_estimators(
        snakemake.input.replicates,
        snakemake.output.significance,
        replicated=snakemake.params.replicated,
        comparisons=snakemake.params.comparisons,
    )

"""Measure what an external verifier leaves to gain, and how much its backbone knows."""

import logging
from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.analyses import headroom
from persistcal.answers.predictions import top_answers
from persistcal.logs import log_to
from persistcal.report.layout import block_name

log = logging.getLogger(__name__)


def measure_headroom(
    predictions_path: str,
    significance_path: str,
    questions_path: str,
    clusters_path: str,
    labels_path: str,
    headroom_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    verifier: str,
    oracle: str,
) -> None:
    """Write the verifier's headroom and its backbone's error rate as a table HEADROOM.

    The headroom comes from the test of the block (`verifier`, `oracle`) in the table
    SIGNIFICANCE. The tables CLUSTERS and LABELS are of the backbone's own answers; the
    PREDICTIONS, of any estimator, say which questions are in a contrast set of at least
    `min_contrast`.
    """
    ids = headroom.contrast_questions(
        artifacts.read(predictions_path, artifacts.PREDICTIONS),
        checkpoints,
        min_contrast=min_contrast,
    )
    found = headroom.headroom(
        artifacts.read(significance_path, artifacts.SIGNIFICANCE),
        block_name([(dataset, verifier), (dataset, oracle)], dataset),
        dataset=dataset,
        verifier=verifier,
        oracle=oracle,
    )
    known = top_answers(
        artifacts.read(questions_path, artifacts.QUESTIONS),
        artifacts.read(clusters_path, artifacts.CLUSTERS),
        artifacts.read(labels_path, artifacts.LABELS),
    )
    error = headroom.error_rate(known, ids)
    owner = {"model": model, "dataset": dataset}
    row = {**owner, **found._asdict(), "error_rate": error, "n": len(ids)}
    artifacts.write_csv(pd.DataFrame([row]), headroom_path, artifacts.HEADROOM)
    log.info("Headroom %.3f, backbone wrong on %.1f %%", found.headroom, 100 * error)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    measure_headroom(
        snakemake.input.predictions,
        snakemake.input.significance,
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.output.headroom,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        verifier=snakemake.params.verifier,
        oracle=snakemake.params.oracle,
    )

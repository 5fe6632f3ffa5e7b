"""Measure what an external verifier leaves to gain, and how much its backbone knows."""

import logging
from collections.abc import Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.analyses import headroom
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.replicates import from_table
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def measure_headroom(
    answers_paths: Sequence[str],
    verifier_path: str,
    oracle_path: str,
    backbone_path: str,
    headroom_path: str,
    *,
    model: str,
    dataset: str,
    checkpoints: Sequence[str],
    min_contrast: int,
    pairs: Pairs,
    verifier: str,
    oracle: str,
) -> None:
    """Write the verifier's headroom and its backbone's error rate as a table HEADROOM.

    The headroom comes from the paired test of the two estimators, whose tables REPLICATES
    are given. The tables ANSWERS of the evaluation `checkpoints` say which questions are in
    a contrast set of at least `min_contrast`, and that of the backbone what it knows.
    """
    ids = headroom.contrast_questions(
        {c: _asked(path) for c, path in zip(checkpoints, answers_paths, strict=True)},
        min_contrast=min_contrast,
        pairs=pairs,
    )
    tables = [
        artifacts.read(path, artifacts.REPLICATES) for path in (verifier_path, oracle_path)
    ]
    of_both = from_table(pd.concat(tables))
    measured = headroom.headroom(of_both, dataset=dataset, verifier=verifier, oracle=oracle)
    error = headroom.error_rate(_asked(backbone_path), ids)
    owner = {"model": model, "dataset": dataset}
    row = {**owner, **measured._asdict(), "error_rate": error, "n": len(ids)}
    artifacts.write_csv(pd.DataFrame([row]), headroom_path, artifacts.HEADROOM)
    log.info("Headroom %.3f, backbone wrong on %.1f %%", measured.headroom, 100 * error)


def _asked(path: str) -> pd.DataFrame:
    """Read the answers to test questions."""
    answers = artifacts.read(path, artifacts.ANSWERS)
    return answers[answers["split"] == "test"]


if __name__ == "__main__":
    log_to(snakemake.log[0])
    measure_headroom(
        snakemake.input.answers,
        snakemake.input.verifier,
        snakemake.input.oracle,
        snakemake.input.backbone,
        snakemake.output.headroom,
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        pairs=snakemake.params.pairs,
        verifier=snakemake.params.verifier,
        oracle=snakemake.params.oracle,
    )

"""Draw questions for a person to check the judge's labels on."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.answers.predictions import top_answers
from persistcal.judge.audit import AuditError, draw_sheet, has_entries
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def draw_audit(
    questions_path: str,
    clusters_paths: Sequence[str],
    labels_paths: Sequence[str],
    sheet_path: str,
    *,
    n_contrast: int,
    n_correct: int,
    n_incorrect: int,
    seed: int,
) -> None:
    """Write an audit sheet, unless someone has written into the one that is there.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    clusters_paths, labels_paths : sequence of str
        Tables CLUSTERS and LABELS of an earlier and a later checkpoint.
    sheet_path : str
        CSV with columns to fill in.
    n_contrast, n_correct, n_incorrect, seed
        See `persistcal.judge.audit.draw_sheet`.
    """
    sheet = Path(sheet_path)
    if sheet.exists() and has_entries(
        pd.read_csv(sheet, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    ):
        raise AuditError(
            f"{sheet}: someone has written into it, so it is not drawn again; move it "
            "elsewhere and give its new place as analyses.audit.filled."
        )
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    earlier, later = (
        top_answers(
            questions,
            artifacts.read(c, artifacts.CLUSTERS),
            artifacts.read(j, artifacts.LABELS),
        )
        for c, j in zip(clusters_paths, labels_paths, strict=True)
    )
    drawn = draw_sheet(
        questions,
        earlier,
        later,
        n_contrast=n_contrast,
        n_correct=n_correct,
        n_incorrect=n_incorrect,
        seed=seed,
    )
    drawn.to_csv(sheet, index=False, encoding="utf-8-sig")  # as spreadsheets expect
    log.info("Drew %d questions to audit: %s", len(drawn), sheet)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_audit(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.labels,
        snakemake.output.sheet,
        n_contrast=snakemake.params.n_contrast,
        n_correct=snakemake.params.n_correct,
        n_incorrect=snakemake.params.n_incorrect,
        seed=snakemake.params.seed,
    )

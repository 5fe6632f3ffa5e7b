"""Draw questions for a person to check the judge's labels on."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal.judge.audit import AuditError, draw_sheet, has_entries
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_audit(
    questions_path: str,
    answers_paths: Sequence[str],
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
    answers_paths : sequence of str
        Tables ANSWERS of an earlier and a later checkpoint.
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
    earlier, later = (artifacts.read(path, artifacts.ANSWERS) for path in answers_paths)
    earlier, later = (answers[answers["split"] == "test"] for answers in (earlier, later))
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
        snakemake.input.answers,
        snakemake.output.sheet,
        n_contrast=snakemake.params.n_contrast,
        n_correct=snakemake.params.n_correct,
        n_incorrect=snakemake.params.n_incorrect,
        seed=snakemake.params.seed,
    )

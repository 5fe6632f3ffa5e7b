"""Summarise a filled audit sheet: how often a person agrees with the judge."""

import logging
from collections.abc import Sequence

import pandas as pd

from persistcal.judge.audit import AuditError, summarise_sheet
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def summarise_audit(
    sheet_path: str,
    answers_paths: Sequence[str],
    agreements_path: str,
) -> None:
    """Write the agreement with the judge to `agreements_path`; the sheet is only read.

    Parameters
    ----------
    sheet_path : str
        CSV of `draw_audit`, filled in.
    answers_paths : sequence of str
        Tables ANSWERS of the earlier and the later checkpoint.
    agreements_path : str
        CSV of `persistcal.store.artifacts.AUDIT_AGREEMENTS`.
    """
    sheet = pd.read_csv(sheet_path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    earlier, later = (artifacts.read(path, artifacts.ANSWERS) for path in answers_paths)
    earlier, later = (answers[answers["split"] == "test"] for answers in (earlier, later))
    try:
        rows = summarise_sheet(sheet, earlier, later)
    except AuditError as error:
        raise AuditError(f"{sheet_path}: {error}") from error
    artifacts.write_csv(rows, agreements_path, artifacts.AUDIT_AGREEMENTS)
    agreement = rows[(rows["group"] == "all") & (rows["measure"] == "agreement")].iloc[0]
    log.info("%d of %d labels agree", agreement["count"], agreement["n"])


if __name__ == "__main__":
    log_to(snakemake.log[0])
    summarise_audit(
        snakemake.input.sheet,
        snakemake.input.answers,
        snakemake.output.agreements,
    )

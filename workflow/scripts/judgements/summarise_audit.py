"""Summarise a filled audit sheet: how often a person agrees with the judge."""

from persistcal.judge.audit import GIVEN, TO_FILL, summarise_sheet
from persistcal.store.artifacts import Answers, AuditAgreements, Questions
from persistcal.store.jobs import log, run
from persistcal.store.sheets import read_drawn


def summarise_audit(
    sheet: str, questions: Questions, answers: list[Answers]
) -> AuditAgreements:
    """Return the agreement with the judge; the file `sheet` is only read.

    `answers` belong to the earlier and the later checkpoint.
    """
    earlier, later = (rows[rows["split"] == "test"] for rows in answers)
    rows = summarise_sheet(read_drawn(sheet, [*GIVEN, *TO_FILL]), questions, earlier, later)
    agreement = rows[(rows["group"] == "all") & (rows["measure"] == "agreement")].iloc[0]
    log.info("%d of %d labels agree", agreement["count"], agreement["n"])
    return rows


if __name__ == "__main__":
    run(summarise_audit, snakemake)

"""Summarise a filled audit sheet: how often a person agrees with the judge."""

from persistcal.judge.audit import AuditError, summarise_sheet
from persistcal.store.artifacts import Answers, AuditAgreements
from persistcal.store.jobs import log, run
from persistcal.store.tables import read_cells


def summarise_audit(sheet: str, answers: list[Answers]) -> AuditAgreements:
    """Return the agreement with the judge; the file `sheet` is only read.

    `answers` belong to the earlier and the later checkpoint.
    """
    earlier, later = (rows[rows["split"] == "test"] for rows in answers)
    cells = read_cells(sheet)
    assert cells is not None
    try:
        rows = summarise_sheet(cells, earlier, later)
    except AuditError as error:
        raise AuditError(f"{sheet}: {error}") from error
    agreement = rows[(rows["group"] == "all") & (rows["measure"] == "agreement")].iloc[0]
    log.info("%d of %d labels agree", agreement["count"], agreement["n"])
    return rows


if __name__ == "__main__":
    run(summarise_audit, snakemake)

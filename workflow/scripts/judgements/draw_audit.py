"""Draw questions for a person to check the judge's labels on."""

from persistcal.judge.audit import AuditError, Draws, draw_sheet, has_entries
from persistcal.store.artifacts import Answers, Questions
from persistcal.store.jobs import Job, log, run
from persistcal.store.tables import read_cells


def draw_audit(
    questions: Questions, answers: list[Answers], *, draws: Draws, seed: int, job: Job
) -> bytes:
    """Return an audit sheet as CSV, unless a person has filled in the present one.

    `answers` belong to an earlier and a later checkpoint.
    """
    sheet = str(job.outputs["sheet"])
    present = read_cells(sheet)
    if present is not None and has_entries(present):
        raise AuditError(
            f"{sheet}: someone has written into it, so it is not drawn again; move it "
            "elsewhere and give its new place as analyses.audit.filled."
        )
    earlier, later = (rows[rows["split"] == "test"] for rows in answers)
    drawn = draw_sheet(questions, earlier, later, draws=draws, seed=seed)
    log.info("Drew %d questions to audit: %s", len(drawn), sheet)
    return drawn.to_csv(index=False).encode("utf-8-sig")  # as spreadsheets expect


if __name__ == "__main__":
    run(draw_audit, snakemake)

"""Draw questions for a person to check the judge's labels on."""

from persistcal.judge.audit import GIVEN, Draws, draw_sheet
from persistcal.store.artifacts import Answers, Questions
from persistcal.store.jobs import Job, log, run
from persistcal.store.sheets import check_unfilled, write_sheet


def draw_audit(
    questions: Questions, answers: list[Answers], *, draws: Draws, seed: int, job: Job
) -> bytes:
    """Return an audit sheet as CSV, unless a person has filled in the present one.

    `answers` belong to an earlier and a later checkpoint.
    """
    sheet = str(job.outputs["sheet"])
    remedy = "move it elsewhere and give its new place as analyses.audit.filled"
    check_unfilled(sheet, GIVEN, remedy)
    earlier, later = (rows[rows["split"] == "test"] for rows in answers)
    drawn = draw_sheet(questions, earlier, later, draws=draws, seed=seed)
    log.info("Drew %d questions to audit: %s", len(drawn), sheet)
    return write_sheet(list(drawn.columns), drawn.to_dict("records"))


if __name__ == "__main__":
    run(draw_audit, snakemake)

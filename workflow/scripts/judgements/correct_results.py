"""Correct accuracies, sizes of contrast sets and contrast metrics by a filled audit sheet."""

from persistcal.judge import correction
from persistcal.judge.audit import GIVEN, TO_FILL, AuditError, Draws, states_of_sheet
from persistcal.store.artifacts import Answers, Corrections, Predictions, Questions
from persistcal.store.jobs import log, run
from persistcal.store.sheets import read_drawn


def correct_results(
    sheet: str,
    questions: Questions,
    answers: list[Answers],
    predictions: Predictions,
    *,
    checkpoints: list[str],
    draws: Draws,
    seed: int,
) -> Corrections:
    """Return results of two checkpoints corrected by a person's labels in `sheet`.

    `answers` belong to the earlier and the later checkpoint. `draws` and `seed` drew the sheet.
    """
    earlier, later = (rows[rows["split"] == "test"] for rows in answers)
    filled = read_drawn(sheet, [*GIVEN, *TO_FILL])
    states = states_of_sheet(filled, questions, earlier, later, draws=draws, seed=seed)
    try:
        rows = correction.correct_results(states, predictions, checkpoints)
    except AuditError as error:
        raise AuditError(f"{sheet}: {error}") from error
    log.info("%d numbers corrected by %d questions", len(rows), rows["n_audited"].max())
    return rows


if __name__ == "__main__":
    run(correct_results, snakemake)

"""Take answers that were generated elsewhere: as questions, beams and labels."""

from collections.abc import Collection

import pandas as pd

from persistcal.readers import answers as reader
from persistcal.readers.answer_files import read_answers
from persistcal.readers.versions import name_other_asking
from persistcal.store.artifacts import BEAMS, Beams, GivenLabels, Questions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import digests_of, name_files_in_errors


def import_answers(
    *,
    entries: list[dict[str, str]],
    strategy: str,
    known: dict[str, dict[str, bool]],
    wanted: reader.Wanted,
    computed: Collection[str] = (),
) -> tuple[Questions, Beams, GivenLabels]:
    """Return the answers of users' files as the tables that the study's other rules read.

    `known` maps the config's models and checkpoints to whether a checkpoint can equal another
    one. `computed` lists the estimators without stated confidences.
    """
    files = [entry["file"] for entry in entries]
    sources = digests_of(*files)
    tables = [read_answers(entry, several=len(entries) > 1) for entry in entries]
    for sentence in name_other_asking(tables):
        log.warning("%s", sentence)
    with name_files_in_errors(*files):
        together = pd.concat(tables, ignore_index=True)
        rows = reader.settle_stated(
            reader.rows_of_study(together, checkpoints=known, wanted=wanted)
        )
        reader.check_weights(rows, strategy)
        reader.check_stated(rows, computed, set(wanted.needs) - set(computed))
        beams = reader.beam_table(rows)
        for _, answers in beams.groupby(list(BEAMS.file_columns), sort=False):
            wanted.check_needs(answers)
        reader.check_answers(rows, known, wanted.needed)
        questions, labels = reader.question_table(rows), reader.label_table(rows)
    for dataset, group in rows.groupby("dataset", sort=False):
        n_questions, n_judged = group["question_id"].nunique(), (group["label"] == "").sum()
        message = "%s: %d questions, %d answers, %d of them for the judge"
        log.info(message, dataset, n_questions, len(group), n_judged)
    for table in (questions, beams, labels):
        table.attrs["sources"] = sources
    return questions, beams, labels


if __name__ == "__main__":
    run(import_answers, snakemake)

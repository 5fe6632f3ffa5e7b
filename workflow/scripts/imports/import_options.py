"""Take scored options of multiple choice from elsewhere: as questions and labelled answers."""

from persistcal.readers.answer_files import read_options
from persistcal.readers.answers import Wanted, rows_of_study
from persistcal.readers.options import (
    check_options,
    join_options,
    name_ties,
    option_tables,
)
from persistcal.store.artifacts import ANSWERS, BEAMS, QUESTIONS
from persistcal.store.jobs import Job, log, run
from persistcal.store.user_files import digests_of, name_files_in_errors


def import_options(
    job: Job,
    *,
    entries: list[dict[str, str]],
    normalisation: str,
    known: dict[str, dict[str, bool]],
    wanted: Wanted,
) -> None:
    """Write the tables of users' scored options; files are read one by one.

    Options need no model and no judge: each option is a separate candidate, and the gold option
    determines whether it is right.
    """
    given = [entry[key] for entry in entries for key in ("file", "requests") if key in entry]
    files = list(dict.fromkeys(given))
    sources = digests_of(*files)
    several = len(entries) > 1
    read = (read_options(entry, normalisation, several=several) for entry in entries)
    together = join_options(read)
    with name_files_in_errors(*files):
        rows = rows_of_study(together, checkpoints=known, wanted=wanted)
        check_options(rows, known, wanted.needed)
    name_ties(rows)
    for table, keys, frame in option_tables(rows):
        if table is BEAMS:
            with name_files_in_errors(*files):
                wanted.check_needs(frame)
        frame.attrs["sources"] = sources
        job.write(table, frame, keys)
        if table is QUESTIONS:
            log.info("%s: %d questions", keys["dataset"], len(frame))
        if table is ANSWERS:
            share, names = frame["correct"].mean(), ", ".join(keys.values())
            log.info("%s: %.4f of the best options are right", names, share)


if __name__ == "__main__":
    run(import_options, snakemake)

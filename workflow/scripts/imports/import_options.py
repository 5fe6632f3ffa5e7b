"""Take scored options of multiple choice from elsewhere: as questions and labelled answers."""

from collections.abc import Mapping, Sequence

from persistcal.answers.options import option_answers, scored_clusters
from persistcal.imports.answer_checks import Wanted
from persistcal.imports.answer_files import read_options
from persistcal.imports.options import ScoredOptions
from persistcal.store.artifacts import ANSWERS, BEAMS, CLUSTERS, LABELS, QUESTIONS
from persistcal.store.jobs import Outputs, log, run
from persistcal.store.user_files import digests_of, name_files_in_errors


def import_options(
    outputs: Outputs,
    *,
    entries: Sequence[Mapping[str, str]],
    normalisation: str,
    known: Mapping[str, Mapping[str, bool]],
    wanted: Wanted,
) -> None:
    """Write the tables of users' scored options; files are read one by one.

    Options need no model and no judge: each option is a separate candidate, and the gold option
    determines whether it is right.
    """
    files = [
        *dict.fromkeys(
            entry[key] for entry in entries for key in ("file", "requests") if key in entry
        )
    ]
    sources = digests_of(*files)
    scored, skipped = ScoredOptions(known, wanted), 0
    for entry in entries:
        rows = read_options(entry, normalisation, several=len(entries) > 1)
        with name_files_in_errors(entry["file"]):
            skipped += scored.add(rows)
    if skipped:
        log.warning("Skipped %d rows, which the study does not read", skipped)
    with name_files_in_errors(*files):
        scored.check(wanted.needed)
    questions = {}
    for about, table in scored.questions():
        table.attrs["sources"] = sources
        outputs.write(QUESTIONS, table, about)
        questions[about["dataset"]] = table
        log.info("%s: %d questions", about["dataset"], len(table))
    for about, beams, scores in scored.scored():
        with name_files_in_errors(*files):
            wanted.check_needs(beams)
        clusters = scored_clusters(beams, scores)
        labels, answers = option_answers(questions[about["dataset"]], clusters)
        for kind, table in (
            (BEAMS, beams),
            (CLUSTERS, clusters),
            (LABELS, labels),
            (ANSWERS, answers),
        ):
            table.attrs["sources"] = sources
            outputs.write(kind, table, about)
        place = ", ".join(about.values())
        log.info("%s: %.4f of the best options are right", place, answers["correct"].mean())


if __name__ == "__main__":
    run(import_options, snakemake)

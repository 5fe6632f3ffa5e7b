"""Prepare the questions of BioASQ from the user's own copy of its training data."""

from collections.abc import Mapping

from persistcal.questions.question_list import check_counts, count_questions
from persistcal.questions.sources import bioasq_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import digests_of, naming, read_json


def prepare_bioasq(*, file: str, expect: Mapping[str, int]) -> Questions:
    """Return the questions of BioASQ; `file` is a setting, as it may not be there yet."""
    try:
        with naming(file):
            questions = bioasq_questions(read_json(file)["questions"])
            check_counts(questions, expect)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{file}: there is no such file. BioASQ may not be passed on: register at "
            "https://participants-area.bioasq.org, download the training data of task 14b and "
            "give its path as datasets.bioasq.file, or drop bioasq from study.datasets."
        ) from error
    except KeyError as error:
        raise ValueError(
            f"{file}: the key {error} is missing; give the task-B training data as BioASQ "
            "distributes it."
        ) from error
    questions.attrs["sources"] = digests_of(file)
    log.info("Questions by type: %s", count_questions(questions))
    return questions


if __name__ == "__main__":
    run(prepare_bioasq, snakemake)

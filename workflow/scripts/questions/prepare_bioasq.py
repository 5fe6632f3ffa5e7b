"""Prepare the questions of BioASQ from the user's own copy of its training data."""

import json
import logging
from pathlib import Path

from persistcal.questions.bioasq import bioasq_questions
from persistcal.questions.question_list import check_counts, count_questions
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def prepare_bioasq(
    file_path: str, questions_path: str, *, dataset: str, expect: dict[str, int]
) -> None:
    """Write the questions of BioASQ as the table QUESTIONS."""
    if not Path(file_path).is_file():
        raise FileNotFoundError(
            f"{file_path}: there is no such file. BioASQ may not be passed on: register at "
            "https://participants-area.bioasq.org, download the training data of task 14b and "
            "give its path as datasets.bioasq.file, or drop bioasq from study.datasets."
        )
    try:
        content = json.loads(Path(file_path).read_text(encoding="utf-8"))
        questions = bioasq_questions(content["questions"])
        check_counts(questions, expect)
    except KeyError as error:
        raise ValueError(
            f"{file_path}: the key {error} is missing; give the task-B training data as BioASQ "
            "distributes it."
        ) from error
    except ValueError as error:
        raise ValueError(f"{file_path}: {error}.") from error
    digest = sha256(file_path)
    about, sources = {"dataset": dataset}, {file_path: digest}
    artifacts.write(
        questions, questions_path, artifacts.QUESTIONS, about=about, sources=sources
    )
    log.info("%s has the SHA-256 %s", file_path, digest)
    log.info("Questions by type: %s", count_questions(questions))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    prepare_bioasq(
        snakemake.params.file,
        snakemake.output.questions,
        dataset=snakemake.wildcards.dataset,
        expect=snakemake.params.expect,
    )

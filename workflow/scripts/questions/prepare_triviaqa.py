"""Prepare the questions of TriviaQA."""

import logging

from datasets import load_dataset

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.questions.question_list import check_counts, count_questions
from persistcal.questions.triviaqa import triviaqa_questions

log = logging.getLogger(__name__)


def prepare_triviaqa(
    questions_path: str,
    *,
    repo: str,
    revision: str,
    train: list[int],
    test: list[int],
    expect: dict[str, int],
) -> None:
    """Write the questions of TriviaQA as the table QUESTIONS."""
    validation, training = load_dataset(
        repo, "rc.nocontext", split=["validation", "train"], revision=revision
    )
    try:
        questions = triviaqa_questions(validation, training, train=train, test=test)
        check_counts(questions, expect)
    except ValueError as error:
        raise ValueError(f"{repo}: {error}.") from error
    artifacts.write(questions, questions_path, artifacts.QUESTIONS)
    log.info("Questions without blacklisted ones: %s", count_questions(questions))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    prepare_triviaqa(
        snakemake.output.questions,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
        train=snakemake.params.train,
        test=snakemake.params.test,
        expect=snakemake.params.expect,
    )

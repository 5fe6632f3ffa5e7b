"""Prepare the questions of TriviaQA."""

import logging

from datasets import load_dataset

from persistcal.questions.question_list import check_counts, count_questions
from persistcal.questions.triviaqa import triviaqa_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def prepare_triviaqa(
    *, repo: str, revision: str, train: list[int], test: list[int], expect: dict[str, int]
) -> Questions:
    """Return the questions of TriviaQA."""
    validation, training = load_dataset(
        repo, "rc.nocontext", split=["validation", "train"], revision=revision
    )
    try:
        questions = triviaqa_questions(validation, training, train=train, test=test)
        check_counts(questions, expect)
    except ValueError as error:
        raise ValueError(f"{repo}: {error}.") from error
    log.info("Questions without blacklisted ones: %s", count_questions(questions))
    return questions


if __name__ == "__main__":
    run(prepare_triviaqa, snakemake)

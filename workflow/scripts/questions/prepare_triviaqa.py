"""Prepare the questions of TriviaQA."""

from datasets import load_dataset

from persistcal.questions.question_list import check_counts, count_questions
from persistcal.questions.sources import triviaqa_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import naming


def prepare_triviaqa(
    *, repo: str, revision: str, train: list[int], test: list[int], expect: dict[str, int]
) -> Questions:
    """Return the questions of TriviaQA."""
    validation, training = load_dataset(
        repo, "rc.nocontext", split=["validation", "train"], revision=revision
    )
    with naming(repo):
        questions = triviaqa_questions(validation, training, train=train, test=test)
        check_counts(questions, expect)
    log.info("Questions without blacklisted ones: %s", count_questions(questions))
    return questions


if __name__ == "__main__":
    run(prepare_triviaqa, snakemake)

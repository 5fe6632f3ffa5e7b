"""Prepare the questions of Jeopardy."""

import logging
from pathlib import Path

from datasets import load_dataset

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.questions.jeopardy import jeopardy_questions
from persistcal.questions.question_list import check_counts, count_questions

log = logging.getLogger(__name__)


def prepare_jeopardy(
    categories_path: str,
    questions_path: str,
    *,
    repo: str,
    revision: str,
    train: list[int],
    test: list[int],
    expect: dict[str, int],
) -> None:
    """Write the questions of Jeopardy as the table QUESTIONS."""
    rows = load_dataset(repo, "all_questions", split="train", revision=revision)
    categories = Path(categories_path).read_text(encoding="utf-8").splitlines()
    try:
        questions = jeopardy_questions(rows, categories, train=train, test=test)
        check_counts(questions, expect)
    except ValueError as error:
        raise ValueError(f"{repo}: {error}.") from error
    artifacts.write(questions, questions_path, artifacts.QUESTIONS)
    kept = {name: count_questions(questions)[name] for name in ("questions", "train", "test")}
    log.info("Questions without blacklisted ones: %s", kept)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    prepare_jeopardy(
        snakemake.input.categories,
        snakemake.output.questions,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
        train=snakemake.params.train,
        test=snakemake.params.test,
        expect=snakemake.params.expect,
    )

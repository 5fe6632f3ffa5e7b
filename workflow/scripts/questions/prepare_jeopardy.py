"""Prepare the questions of Jeopardy."""

from pathlib import Path

from datasets import load_dataset

from persistcal.questions.question_list import check_counts, count_questions
from persistcal.questions.sources import jeopardy_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import naming


def prepare_jeopardy(
    categories: Path,
    *,
    repo: str,
    revision: str,
    train: list[int],
    test: list[int],
    expect: dict[str, int],
) -> Questions:
    """Return the questions of Jeopardy of the categories that a text file lists."""
    rows = load_dataset(repo, "all_questions", split="train", revision=revision)
    names = categories.read_text(encoding="utf-8").splitlines()
    with naming(repo):
        questions = jeopardy_questions(rows, names, train=train, test=test)
        check_counts(questions, expect)
    kept = {name: count_questions(questions)[name] for name in ("questions", "train", "test")}
    log.info("Questions without blacklisted ones: %s", kept)
    return questions


if __name__ == "__main__":
    run(prepare_jeopardy, snakemake)

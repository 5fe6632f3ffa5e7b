"""Prepare the questions of a dataset, from any source that has no facts."""

from typing import Any

from persistcal.questions.question_list import limit_questions
from persistcal.questions.sources import read_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import run


def prepare_questions(
    *,
    source: str,
    settings: dict[str, Any],
    least: dict[str, int],
    states: list[str],
    limit: int | None = None,
) -> Questions:
    """Return the questions of a `source`, by the keys of the dataset in the config.

    `least` is the number of questions of each split that the study needs, and `states` are the
    names of its checkpoints. Only the first `limit` questions of each split are asked.
    """
    questions = read_questions(source, {**settings, "least": least, "states": states})
    return limit_questions(questions, limit)


if __name__ == "__main__":
    run(prepare_questions, snakemake)

"""Read a user's questions from JSONL, CSV or parquet."""

from collections.abc import Mapping, Sequence
from typing import Any

from persistcal.questions.own import KNOWN, LISTS, check_splits, tidy_questions
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import digests_of, naming, read_file


def read_questions(
    file: str,
    *,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
    least: Mapping[str, int],
    states: Sequence[str] = (),
) -> Questions:
    """Return the questions of a user's file, at least so many of each split.

    Answers may differ between the checkpoints `states`.
    """
    sizes: dict[str, Any] = {"n_few_shot": n_few_shot, "n_train": n_train, "n_test": n_test}
    with naming(file):
        rows = read_file(file, known=KNOWN, lists=LISTS)
        questions = tidy_questions(rows, **sizes, seed=seed, states=states)
        check_splits(questions["split"], least)
    questions.attrs["sources"] = digests_of(file)
    log.info("Questions per split: %s", questions["split"].value_counts().to_dict())
    return questions


if __name__ == "__main__":
    run(read_questions, snakemake)

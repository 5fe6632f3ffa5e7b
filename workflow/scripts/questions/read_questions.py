"""Read questions of one's own from JSONL, CSV or parquet."""

import logging
from collections.abc import Mapping
from pathlib import Path

from persistcal.questions.own import KNOWN, check_splits, tidy_questions
from persistcal.questions.question_files import read_rows
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def read_questions(
    file_path: str,
    questions_path: str,
    *,
    dataset: str,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
    least: Mapping[str, int],
) -> None:
    """Write the questions of the file at `file_path`, at least so many of each split."""
    kind = Path(file_path.removesuffix(".gz")).suffix
    try:
        rows = read_rows(Path(file_path).read_bytes(), kind, known=KNOWN)
        questions = tidy_questions(
            rows, n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
        )
        check_splits(questions["split"], least)
    except ValueError as error:
        raise ValueError(f"{file_path}: {error}.") from error
    digest = sha256(file_path)
    about, sources = {"dataset": dataset}, {file_path: digest}
    artifacts.write(
        questions, questions_path, artifacts.QUESTIONS, about=about, sources=sources
    )
    log.info("%s has the SHA-256 %s", file_path, digest)
    log.info("Questions per split: %s", questions["split"].value_counts().to_dict())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    read_questions(
        snakemake.input.file,
        snakemake.output.questions,
        dataset=snakemake.wildcards.dataset,
        n_few_shot=snakemake.params.n_few_shot,
        n_train=snakemake.params.n_train,
        n_test=snakemake.params.n_test,
        seed=snakemake.params.seed,
        least=snakemake.params.least,
    )

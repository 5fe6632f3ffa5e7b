"""Read questions of one's own from JSONL, CSV or parquet."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.questions.own import tidy_questions

log = logging.getLogger(__name__)


def _read_lines(path: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        try:
            if line.strip():
                yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number} is not JSON ({error}); correct it") from error


def _read(path: str) -> pd.DataFrame:
    kind = Path(path).suffix
    if kind == ".jsonl":
        return pd.DataFrame(_read_lines(path))
    if kind == ".csv":
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    if kind == ".parquet":
        return pd.read_parquet(path)
    raise ValueError(f"files of kind {kind!r} are not read; give .jsonl, .csv or .parquet")


def read_questions(
    file_path: str,
    questions_path: str,
    *,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
) -> None:
    """Write the questions of the file at `file_path` as the table QUESTIONS.

    Parameters
    ----------
    file_path : str
        Columns question, answers and optionally id, category, split.
    questions_path : str
        Table `persistcal.artifacts.QUESTIONS`.
    n_few_shot, n_train, n_test, seed : int
        Split to draw when the file has no column split.
    """
    try:
        questions = tidy_questions(
            _read(file_path), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
        )
    except ValueError as error:
        raise ValueError(f"{file_path}: {error}.") from error
    artifacts.write(questions, questions_path, artifacts.QUESTIONS)
    log.info("Questions per split: %s", questions["split"].value_counts().to_dict())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    read_questions(
        snakemake.input.file,
        snakemake.output.questions,
        n_few_shot=snakemake.params.n_few_shot,
        n_train=snakemake.params.n_train,
        n_test=snakemake.params.n_test,
        seed=snakemake.params.seed,
    )

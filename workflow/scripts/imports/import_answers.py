"""Take answers that were generated elsewhere: as questions, beams and labels."""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.confidence.needs import check_needs
from persistcal.imports.answer_checks import (
    check_distinct,
    check_numbers,
    check_questions,
    check_splits,
    check_weights,
)
from persistcal.imports.inspect_logs import inspect_rows
from persistcal.imports.lm_eval_logs import is_lm_eval_log, lm_eval_rows
from persistcal.imports.own_answers import (
    KNOWN,
    LISTS,
    NAMES,
    OwnAnswersError,
    beam_table,
    label_table,
    question_table,
    select_rows,
    tidy_answers,
)
from persistcal.questions.question_files import read_rows
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)

Place = tuple[str, str, str]  # model, checkpoint, dataset


def import_answers(
    entries: Sequence[Mapping[str, str]],
    questions_paths: Mapping[str, str],
    beams_paths: Mapping[Place, str],
    labels_paths: Mapping[str, str],
    *,
    strategy: str,
    known: Mapping[str, Mapping[str, bool]],
    datasets: Collection[str],
    splits: Mapping[Place, Mapping[str, str]],
    needs: Mapping[str, tuple[str, ...]],
) -> None:
    """Write what the files say as the tables that the study's other rules read.

    Parameters
    ----------
    entries : sequence of mapping
        Key `file`, of `model`, `checkpoint` and `dataset` what its rows do not say, and of
        a log's `filter` and `labels` what to take from it.
    questions_paths, labels_paths : mapping
        Tables QUESTIONS and GIVEN_LABELS, by dataset.
    beams_paths : mapping
        Tables BEAMS, by model, checkpoint and dataset.
    strategy : {"beams", "sample"}
        How the answers were made.
    known, datasets : mapping, collection
        Checkpoints of each model, and whether each may be equal to another one; and
        datasets, that the config has.
    splits : mapping
        By place and split, what needs answers to it.
    needs : mapping
        By estimator what it needs of the answers, see `persistcal.confidence.needs`.
    """
    sources = {entry["file"]: sha256(entry["file"]) for entry in entries}
    parts = [read_answers(entry, several=len(entries) > 1) for entry in entries]
    try:
        rows, left_out = select_rows(
            pd.concat(parts, ignore_index=True),
            known=known,
            datasets=datasets,
            wanted=list(beams_paths),
        )
        for where, n in left_out.items():
            log.warning("Skipped %d rows of %s, which the study does not read", n, where)
        check_weights(rows, strategy)
        groups: dict[Any, pd.DataFrame] = dict(
            list(rows.groupby(["model", "checkpoint", "dataset"], sort=False))
        )
        beams = {place: beam_table(groups[place]) for place in beams_paths}
        for place, answers in beams.items():
            for estimator, needed in needs.items():
                check_needs(estimator, needed, answers.assign(checkpoint=place[1]))
        for dataset, path in questions_paths.items():
            of_dataset = rows[rows["dataset"] == dataset]
            check_questions(of_dataset, dataset)
            check_numbers(of_dataset, dataset)
            check_distinct(of_dataset, dataset, known)
            check_splits(
                of_dataset,
                dataset,
                {key[:2]: s for key, s in splits.items() if key[2] == dataset},
            )
            labels = label_table(of_dataset)
            questions = question_table(of_dataset)
            how = {"about": {"dataset": dataset}, "sources": sources}
            artifacts.write(questions, path, artifacts.QUESTIONS, **how)
            artifacts.write(labels, labels_paths[dataset], artifacts.GIVEN_LABELS, **how)
            n = int((of_dataset["label"] == "").sum())
            log.info(
                "%s: %d questions, %d answers, %d of them for the judge",
                dataset,
                len(questions),
                len(of_dataset),
                n,
            )
    except ValueError as error:
        raise OwnAnswersError(f"{', '.join(sources)}: {error}.") from error
    for place, path in beams_paths.items():
        about = dict(zip(("model", "checkpoint", "dataset"), place, strict=True))
        artifacts.write(beams[place], path, artifacts.BEAMS, about=about, sources=sources)


def read_answers(entry: Mapping[str, str], *, several: bool) -> pd.DataFrame:
    """Return the answers of one file, whoever wrote it, each row checked for itself."""
    path = Path(entry["file"])
    said = {name: value for name, value in entry.items() if name in NAMES}
    kind = Path(path.name.removesuffix(".gz")).suffix
    labelled = entry.get("labels") == "log"
    try:
        if kind == ".eval":
            rows, used = inspect_rows(path, labelled=labelled), {"labels"}
        else:
            rows, used = read_rows(path.read_bytes(), kind, known=KNOWN, lists=LISTS), set()
        if is_lm_eval_log(rows.columns):
            rows = lm_eval_rows(rows, filtered=entry.get("filter"), labelled=labelled)
            used = {"labels", "filter"}
        for key in sorted({"labels", "filter"} & set(entry) - used):
            raise OwnAnswersError(f"is no log that has {key}; remove the key from its entry")
        for name, value in said.items():
            if name in rows.columns:
                raise OwnAnswersError(
                    f"has a column {name!r} and study.answers gives one beside it; keep one"
                )
            rows[name] = value
        return tidy_answers(rows, file=path.name if several else "")
    except ValueError as error:
        raise OwnAnswersError(f"{path}: {error}.") from error


if __name__ == "__main__":
    log_to(snakemake.log[0])
    datasets = snakemake.config["study"]["datasets"]
    places = {tuple(place): splits for *place, splits in snakemake.params.splits}
    import_answers(
        snakemake.params.entries,
        dict(zip(datasets, snakemake.output.questions, strict=True)),
        dict(zip(places, snakemake.output.beams, strict=True)),
        dict(zip(datasets, snakemake.output.labels, strict=True)),
        strategy=snakemake.params.strategy,
        known=snakemake.params.known,
        datasets=list(snakemake.config["datasets"]),
        splits=places,
        needs=snakemake.params.needs,
    )

"""Users' files as the predictions of a study, and what the command took for granted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from persistcal.answers.clusters import cluster_table, identical
from persistcal.confidence.estimate import (
    NEITHER,
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    find_estimator,
    join_predictions,
)
from persistcal.confidence.evidence import check_needs
from persistcal.imports import answer_checks
from persistcal.imports import answers as own_answers
from persistcal.imports import predictions as own_predictions
from persistcal.imports.answer_files import read_answers
from persistcal.imports.answers import beam_table, label_table, question_table
from persistcal.imports.predictions import imported_answers
from persistcal.judge.run import label_answers, lexical_labels
from persistcal.store import artifacts
from persistcal.store.files import exists, folder_of, is_file, last_part
from persistcal.store.user_files import (
    UserTableError,
    columns_of,
    kind_of,
    name_files_in_errors,
    read_batches,
)

# Display names of the estimators that need nothing but a checkpoint's own answers, as in the
# config of the workflow, and those that rate unless others are asked for
ESTIMATORS = {
    "end_correct": "End-correct baseline",
    "self_consistency": "Self-consistency",
    "semantic_entropy": "Semantic entropy",
    "sequence_probability": "Sequence probability",
    "perplexity": "Perplexity",
    "mean_token_entropy": "Mean token entropy",
    "sequence_entropy": "Sequence entropy",
    "semantic_sequence_entropy": "Semantic entropy, Monte Carlo",
    "semantic_sets": "Number of meanings",
    "degree_matrix": "Degree matrix",
    "eccentricity": "Eccentricity",
    "laplacian_eigenvalues": "Laplacian eigenvalues",
    "cocoa": "CoCoA",
}
USUAL = ("end_correct", "self_consistency", "semantic_entropy")
KNOWN = {*own_answers.KNOWN, *own_predictions.KNOWN}
IMPORTED = ""  # stands for the estimators of a file of predictions, evaluated together

Place = tuple[str, str, str]  # model, dataset, estimator


@dataclass
class StudyOfFiles:
    """What files hold, as the tables that the scripts of the workflow read.

    `checkpoints` are by model, in the order of the files and of their rows. The last three
    tables are empty where the files are predictions. `notes` say what was taken for granted.
    """

    checkpoints: dict[str, list[str]]
    predictions: dict[Place, pd.DataFrame]
    answers: pd.DataFrame
    questions: pd.DataFrame = field(default_factory=lambda: as_read([], artifacts.QUESTIONS))
    clusters: pd.DataFrame = field(default_factory=lambda: as_read([], artifacts.CLUSTERS))
    labels: pd.DataFrame = field(default_factory=lambda: as_read([], artifacts.LABELS))
    notes: list[str] = field(default_factory=list)


def as_read(
    parts: Sequence[tuple[pd.DataFrame, Mapping[str, str]]], table: artifacts.Table
) -> pd.DataFrame:
    """Return frames, and what each is about, as `read_files` returns the files of them."""
    columns = [*table.file_columns, *table.schema.names]
    frames = []
    for frame, about in parts:
        whole = frame.assign(**{n: about[n] for n in columns if n in about})
        rows = artifacts.check(whole[table.schema.names], table, table.name).to_pandas()
        frames.append(rows.assign(**{n: about[n] for n in table.file_columns})[columns])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def rows_about(table: pd.DataFrame, about: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of a table about a model, a dataset and so on."""
    return table[(table[list(about)] == list(about.values())).all(axis=1)]


def names_of_checkpoints(files: Sequence[str]) -> list[str]:
    """Return a name for each file: its own, or its folder's where several have the same.

    >>> names_of_checkpoints(["early.jsonl.gz", "late.jsonl"])
    ['early', 'late']
    >>> names_of_checkpoints(["step1/samples.jsonl", "step2/samples.jsonl"])
    ['step1', 'step2']
    """
    own = [last_part(file).removesuffix(".gz") for file in files]
    own = [name.removesuffix(kind_of(name)) for name in own]
    for names in (own, [last_part(folder_of(file)) for file in files]):
        if len(set(names)) == len(names) and all(names):
            return names
    raise ValueError(
        f"{', '.join(files)}: neither the names of the files nor those of their folders tell "
        "the checkpoints apart; rename them, or add a column checkpoint."
    )


def read_study(
    files: Sequence[str],
    *,
    from_logs: Mapping[str, str],
    estimators: Sequence[str],
    unlabelled: str | None = None,
    strategy: str = "",
) -> StudyOfFiles:
    """Read files of answers or of predictions; the columns say which.

    `from_logs` has keys of `answer_files.OF_LOGS`; without `estimators`, those of `USUAL` whose
    needs are met, and all that the answers state, rate answers, and all estimators in files of
    predictions are read. The file `unlabelled` can lack the column `correct`: its answers then
    count as incorrect. The `strategy` that made the answers is beams or sample; without one,
    answers that could be beams are refused.
    """
    if lacking := [file for file in files if not exists(file)]:
        raise ValueError(f"{lacking[0]}: there is no such file; correct its name.")
    if unfit := [file for file in files if not is_file(file)]:
        raise ValueError(
            f"{unfit[0]}: is a folder or a pipe; give a file, or - for standard input."
        )
    if len(set(files)) < len(files):
        raise ValueError(f"{', '.join(files)}: a file is given twice; name each once.")
    of_predictions, unnamed = [], []
    for file in files:
        with name_files_in_errors(file):
            there = [] if kind_of(file) == ".eval" else columns_of(file, known=KNOWN)
            of_predictions.append("confidence" in there and "answer" not in there)
            unnamed += [] if "checkpoint" in there else [file]
    names = names_of_checkpoints(files)
    if not any(of_predictions):
        named = dict(zip(files, names, strict=True))
        return _from_answers(named, unnamed, from_logs, estimators, strategy)
    if not all(of_predictions):
        other = files[of_predictions.index(False)]
        raise ValueError(
            f"{other}: contains answers and another file predictions; give only answers or "
            "only predictions."
        )
    if unused := [*sorted(from_logs), *filter(None, [strategy])]:
        raise ValueError(
            f"{files[0]}: predictions have labels of their own, so {unused[0]} has no "
            "meaning; leave it out."
        )
    named = dict(zip(files, names, strict=True))
    return _from_predictions(named, unnamed, estimators, unlabelled)


def _check_names(
    names: Mapping[str, str], unnamed: Collection[str], frames: Sequence[pd.DataFrame]
) -> None:
    """Refuse a file without a column checkpoint whose name another file has in its column."""
    for file, rows in zip(names, frames, strict=True):
        known = set() if file in unnamed else set(rows["checkpoint"].astype(str))
        for other in unnamed:
            if names[other] in known:
                raise ValueError(
                    f"{other}: has no column 'checkpoint', so its checkpoint is called "
                    f"{names[other]!r}, and {file} has another checkpoint of this name; add "
                    "the column, or rename the file."
                )


def _from_predictions(
    files: Mapping[str, str],
    unnamed: Collection[str],
    estimators: Sequence[str],
    unlabelled: str | None,
) -> StudyOfFiles:
    frames = []
    for file, name in files.items():
        with name_files_in_errors(file):
            given = {"checkpoint": name} | ({"correct": "0"} if file == unlabelled else {})
            frame = own_predictions.collect_rows(_filled(file, given))
            frame = _only(frame, estimators)
        if len(files) > 1:
            frame["row"] = [f"{row} of {file}" for row in frame["row"]]
        frames.append(frame)
    _check_names(files, unnamed, frames)
    rows = pd.concat(frames, ignore_index=True) if frames[1:] else frames[0]
    for name in own_predictions.NAMES:
        rows[name] = pd.api.types.union_categoricals([frame[name] for frame in frames])
    checkpoints, predictions = _checkpoints(rows), {}
    with name_files_in_errors(*files):
        own_predictions.check_spelling(rows)
        for model, dataset in _distinct(rows, ["model", "dataset"]):
            there = dict.fromkeys(checkpoints[model], False)
            own_predictions.check_predictions(rows, [dataset], {model: there})
            here = rows[(rows["model"] == model) & (rows["dataset"] == dataset)]
            about = {"model": model, "dataset": dataset}
            predictions[model, dataset, IMPORTED] = as_read(
                [(here, about)], artifacts.PREDICTIONS
            )
    return StudyOfFiles(checkpoints, predictions, imported_answers(rows))


def _only(rows: pd.DataFrame, estimators: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the chosen estimators, or all rows if none is chosen."""
    known = rows["estimator"].astype(str)
    if missing := [name for name in estimators if name not in set(known)]:
        raise ValueError(
            f"there is no estimator {missing[0]!r}; choose from {', '.join(sorted(set(known)))}"
        )
    return rows[known.isin(estimators)].reset_index(drop=True) if estimators else rows


def _filled(file: str, given: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of predictions, with the columns that it may lack."""
    usual = {"model": "model", "dataset": "dataset", "estimator": "confidence", "seed": "0"}
    given = {**usual, **given}

    def check(columns: Sequence[str]) -> None:
        own_predictions.check_columns([*columns, *(n for n in given if n not in columns)])

    for batch in read_batches(file, known=own_predictions.KNOWN, check=check):
        for name, value in given.items():
            if name not in batch.schema.names:
                batch = batch.append_column(name, pa.array([value] * len(batch)))
        yield batch


def _from_answers(
    files: Mapping[str, str],
    unnamed: Collection[str],
    from_logs: Mapping[str, str],
    estimators: Sequence[str],
    strategy: str,
) -> StudyOfFiles:
    parts = []
    for file, name in files.items():
        otherwise = {"model": "model", "checkpoint": name, "dataset": "dataset"}
        entry = {"file": file, **from_logs}
        parts.append(read_answers(entry, several=len(files) > 1, otherwise=otherwise))
    _check_names(files, unnamed, parts)
    every = pd.concat(parts, ignore_index=True)
    rows = every[every["split"] == "test"]
    checkpoints = _checkpoints(rows)
    with name_files_in_errors(*files):
        if rows.empty:
            raise UserTableError("no row has the split test; only these are evaluated")
        weighting = _weighting(rows, strategy)
        beams = beam_table(rows)
        known = {model: dict.fromkeys(names, False) for model, names in checkpoints.items()}
        needed = {m: {c: {"test": "evaluation"} for c in names} for m, names in known.items()}
        answer_checks.check_answers(rows, known=known, needed=needed)
        questions, given = question_table(rows), label_table(rows)
        own_answers.check_stated(rows, ESTIMATORS)
        stated = own_answers.stated_names(rows)
        chosen, left_out = _rating(beams, estimators, stated)
    tables = _label(beams, questions, given, weighting)
    notes = [_WEIGHED[weighting], *_notes(tables["labels"], chosen), *left_out]
    if others := len(every) - len(rows):
        notes.append(
            f"Left out: {others:,} answers of the split train, which is not evaluated."
        )
    study = StudyOfFiles(checkpoints, {}, **tables, notes=notes)
    for model, dataset in _distinct(rows, ["model", "dataset"]):
        for name in chosen:
            about = {"model": model, "dataset": dataset}
            function = "stated" if name in stated else name
            rated = _rate((name, function), study, beams, about, weighting)
            study.predictions[model, dataset, name] = as_read(
                [(rated, about)], artifacts.PREDICTIONS
            )
    return study


_WEIGHED = {
    "equal": "Answers are samples: every answer to a question counts equally.",
    "softmax": "Answers are beams: they weigh by the softmax of their log-probabilities.",
}


def _weighting(rows: pd.DataFrame, strategy: str) -> str:
    """Return how answers weigh; refuse answers that can be beams unless a strategy is given."""
    several = rows.duplicated([*answer_checks.PLACE, "question_id"]).any()
    if not strategy and several and answer_checks.can_be_beams(rows):
        raise UserTableError(
            "the answers to each question differ and their probabilities sum to at most 1, as "
            "in a beam search; give --beams if they are beams, which weigh by their "
            "log-probability, or --samples if they were drawn at random and weigh equally"
        )
    answer_checks.check_weights(rows, strategy)
    return "softmax" if strategy == "beams" else "equal"


def _rating(
    beams: pd.DataFrame, asked: Sequence[str], stated: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the estimators that rate the answers, and why others of `USUAL` do not."""
    if unknown := [name for name in asked if name not in {*ESTIMATORS, *stated}]:
        names = ", ".join([*ESTIMATORS, *stated])
        raise ValueError(f"no estimator is {unknown[0]!r}; there are {names}")
    chosen, left_out = [], []
    for name in asked or [*USUAL, *stated]:
        needs = find_estimator("stated" if name in stated else name)[1]
        try:
            for _, answers in beams.groupby(list(artifacts.BEAMS.file_columns), sort=False):
                check_needs(name, needs, answers)
            chosen.append(name)
        except ValueError as error:
            if asked:
                raise
            left_out.append(f"Left out: {str(error).partition(';')[0]}.")
    return chosen, left_out


def _label(
    beams: pd.DataFrame, questions: pd.DataFrame, given: pd.DataFrame, weighting: str
) -> dict[str, pd.DataFrame]:
    """Group and label the answers of each checkpoint; return tables by name."""
    tables = {
        "clusters": artifacts.CLUSTERS,
        "labels": artifacts.LABELS,
        "answers": artifacts.ANSWERS,
    }
    made: dict[str, list[Any]] = {name: [] for name in tables}
    asked = {
        str(dataset): as_read([(rows, {"dataset": str(dataset)})], artifacts.QUESTIONS)
        for dataset, rows in questions.groupby("dataset", sort=False)
    }
    for place, rows in beams.groupby(list(artifacts.BEAMS.file_columns), sort=False):
        about = dict(zip(artifacts.BEAMS.file_columns, map(str, place), strict=True))
        here = asked[about["dataset"]]
        grouped = cluster_table(here, rows, identical, weighting=weighting)
        clusters = as_read([(grouped, about)], artifacts.CLUSTERS)
        known = given[given["dataset"] == about["dataset"]]
        labels, answers = label_answers(here, clusters, known, lexical_labels)
        made["clusters"].append((grouped, about))
        made["labels"].append((labels, about))
        made["answers"].append((answers, about))
    return {
        "questions": pd.concat(asked.values(), ignore_index=True),
        **{name: as_read(parts, tables[name]) for name, parts in made.items()},
    }


def _rate(
    estimator: tuple[str, str],
    study: StudyOfFiles,
    beams: pd.DataFrame,
    about: Mapping[str, str],
    weighting: str,
) -> pd.DataFrame:
    """Return the predictions of one model and dataset with an estimator's confidences.

    The estimator is given by its name and its function. Missing confidences are noted.
    """
    questions = study.questions[study.questions["dataset"] == about["dataset"]]
    names = study.checkpoints[about["model"]]
    asked = rows_about(beams, about).groupby("checkpoint", sort=False)
    by_checkpoint = [(rows, {**about, "checkpoint": str(name)}) for name, rows in asked]
    tables = AnswerTables(
        questions,
        as_read(by_checkpoint, artifacts.BEAMS),
        rows_about(study.clusters, about),
        rows_about(study.answers, about),
    )
    how = Estimation(
        *estimator,
        about["dataset"],
        read=names,
        earlier=[],
        evaluation=names,
        equivalence={"backend": "lexical"},
        sampled=weighting == "equal",
    )
    rated = estimate(how, tables)
    lacking = rated[rated["unsaid"]].groupby("checkpoint", sort=False).size()
    study.notes += [
        f"{estimator[0]}: {n:,} answers of {about['model']}, {name} to {about['dataset']} "
        f"state no confidence and count as {NEITHER:g}."
        for name, n in lacking.items()
    ]
    return join_predictions(tables.predictions(names, "test"), rated[RATED], estimator[0])


def _notes(labels: pd.DataFrame, chosen: Sequence[str]) -> list[str]:
    """Return how answers were grouped and labelled, and who rated them."""
    lexical = int((labels["source"] == "lexical").sum())
    return [
        "Answers were grouped lexically: they mean the same where they differ in nothing but "
        "case and full stops.",
        f"Of {len(labels):,} groups of answers {lexical:,} were labelled lexically, by a match "
        "with the references; the others by labels that came with them.",
        f"Rated by {', '.join(chosen)}.",
    ]


def _checkpoints(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return the checkpoints of each model in the order of the rows."""
    found: dict[str, list[str]] = {}
    for model, checkpoint in _distinct(rows, ["model", "checkpoint"]):
        found.setdefault(model, []).append(checkpoint)
    return found


def _distinct(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    found = rows[list(columns)].astype(str).drop_duplicates()
    return list(found.itertuples(index=False, name=None))

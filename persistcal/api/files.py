"""Read files of predictions, answers or scored options as the tables of an evaluation."""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from persistcal.api.inputs import (
    DEFAULTS,
    IMPORTED,
    PLACE,
    PredictionTables,
    checkpoints_by_model,
    distinct_rows,
    select_rows,
    stack,
)
from persistcal.api.rating import rate_answers, rate_options
from persistcal.imports import answers as own_answers
from persistcal.imports import options as own_options
from persistcal.imports import predictions as own_predictions
from persistcal.imports.answer_files import LOGS, columns_and_scores, read_answers, read_options
from persistcal.imports.answers import name_stated
from persistcal.imports.predictions import imported_answers
from persistcal.store import artifacts
from persistcal.store.user_files import (
    UserTableError,
    kind_of,
    name_files_in_errors,
    read_batches,
)

log = logging.getLogger(__name__)

PREDICTIONS, ANSWERS, OPTIONS = "predictions", "answers", "scored options"  # kinds of files
KNOWN = {*own_answers.KNOWN, *own_options.KNOWN, *own_predictions.KNOWN}
# Other names of columns, for the remedy of an error
OTHER_NAMES = {
    "confidence": ("conf", "prob", "probability", "p_true", "score", "certainty"),
    "question_id": ("id", "qid", "idx", "index", "sample_id", "example_id"),
    "correct": ("is_correct", "accuracy", "acc", "right", "hit", "label"),
    "answer": ("response", "prediction", "output", "completion", "generation"),
    "references": ("reference", "target", "gold", "ground_truth", "reference_answer"),
    "question": ("prompt", "input", "query"),
    "checkpoint": ("version", "revision"),
}
# The time in the name of a log of lm-evaluation-harness or Inspect
STAMP = re.compile(
    r"[_-]?\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d[-:]?\d\d)?(?=_|$)_?"
)


@dataclass(frozen=True)
class Reading:
    """Options for reading files, named like those of the command."""

    labels: str | None = None  # "log" takes the score of a log, else answers are matched
    filter: str | None = None  # of lm-evaluation-harness, whose output is the answer
    estimators: Sequence[str] = ()  # that rate answers, or of predictions (by default all)
    beams: bool | None = None  # whether several answers to a question are beams or samples
    columns: Mapping[str, str] = field(default_factory=dict)  # other names in the files
    names: Sequence[str] = ()  # of the checkpoints, one for each file
    deployed: str | None = None  # "first": the first answer to a question, which others rate
    unlabelled: str | None = None  # a file whose answers without a label count as incorrect
    normalisation: str | None = None  # of the options of multiple choice

    def check_use(self, kind: str, file: str) -> None:
        """Refuse options that have no meaning for files of a kind."""
        given = {
            "--labels": self.labels,
            "--filter": self.filter,
            "--deployed": self.deployed,
            "--samples or --beams": self.beams,
            "--normalisation": self.normalisation,
            "--columns": self.columns or None,
        }
        useful = {
            PREDICTIONS: {"--columns"},
            ANSWERS: given.keys() - {"--normalisation"},
            OPTIONS: {"--labels", "--normalisation"},
        }[kind]
        for name, value in given.items():
            if value is not None and name not in useful:
                raise ValueError(
                    f"{file}: contains {kind}, so {name} has no meaning; leave it out."
                )


def read_study(files: Sequence[str], reading: Reading = Reading()) -> PredictionTables:
    """Read files of answers, of scored options or of predictions."""
    _check_files(files, reading)
    kinds, unnamed = [], []
    for file in files:
        kind, columns = _kind_and_columns(file, reading)
        kinds.append(kind)
        is_log = not columns or any(keys <= columns for keys in LOGS)
        if reading.columns and is_log:
            raise ValueError(f"{file}: is a log, so --columns has no meaning; leave it out.")
        if "checkpoint" not in columns:
            unnamed.append(file)
        elif reading.names:
            raise ValueError(
                f"{file}: has a column checkpoint, so --names has no meaning; leave one out."
            )
    named = dict(zip(files, reading.names or name_checkpoints(files), strict=True))
    kind = kinds[0]
    for file, other in zip(files, kinds, strict=True):
        if other != kind:
            raise ValueError(
                f"{file}: contains {other} and {files[0]} {kind}; give only {other} or only "
                f"{kind}."
            )
    reading.check_use(kind, files[0])
    read = {PREDICTIONS: _read_predictions, ANSWERS: _read_answers, OPTIONS: _read_options}
    return read[kind](named, unnamed, reading)


def _kind_and_columns(file: str, reading: Reading) -> tuple[str, set[str]]:
    """Return what a file contains, and its columns by the names that they have here."""
    known = {*KNOWN, *reading.columns.values()}
    renamed = {given: column for column, given in reading.columns.items()}
    if kind_of(file) == ".eval":
        return ANSWERS, set()
    with name_files_in_errors(file):
        present, scores_options = columns_and_scores(file, known)
    columns = {renamed.get(name, name) for name in present}
    if not {"confidence", "answer", "option_logprobs", "doc_id"} & columns:
        lacking = [name for name in OTHER_NAMES if name not in columns]
        spare = [name for name in present if name not in known]
        raise ValueError(
            f"{file}: has neither the column 'confidence' of predictions nor the column "
            f"'answer' of answers; {_remedy(lacking, spare)}."
        )
    # Predictions can have their answers' texts; without labels answers are matched.
    if "confidence" in columns and ("correct" in columns or "answer" not in columns):
        return PREDICTIONS, columns
    is_scored = "option_logprobs" in columns or ("doc_id" in columns and scores_options)
    return OPTIONS if is_scored else ANSWERS, columns


def _check_files(files: Sequence[str], reading: Reading) -> None:
    """Refuse files that are missing or repeated, and names that do not fit them."""
    for file in files:
        if not Path(file).exists():
            raise ValueError(f"{file}: there is no such file; correct its name.")
        if not Path(file).is_file():
            raise ValueError(f"{file}: is a folder or a pipe; give a file, or - for stdin.")
    if len(set(files)) < len(files):
        raise ValueError(f"{', '.join(files)}: a file is given twice; name each once.")
    if reading.names and len(set(reading.names)) != len(files):
        raise ValueError(
            f"--names gives {', '.join(reading.names)} for {len(files)} files; give each file "
            "a name of its own."
        )


def name_checkpoints(files: Sequence[str]) -> list[str]:
    """Return a name for each file: the part that differs, without the time stamps of logs.

    Files of one name are named after their folders, which are the models' names in results of
    lm-evaluation-harness. Logs of Inspect are named after their models.

    >>> name_checkpoints(["early.jsonl.gz", "late.jsonl"])
    ['early', 'late']
    >>> name_checkpoints(["org__a/samples_quiz_2026-01-01T08-16-28.840983.jsonl",
    ...                   "org__b/samples_quiz_2026-01-02T09-26-58.123456.jsonl"])
    ['a', 'b']
    >>> name_checkpoints(["quiz_v1.csv", "quiz_v2.csv"])
    ['v1', 'v2']
    """
    stems = [Path(file).name.removesuffix(".gz") for file in files]
    stems = [stem.removesuffix(kind_of(stem)) for stem in stems]
    folders = [Path(file).parent.name for file in files]
    unstamped = [STAMP.sub("", stem) for stem in stems]
    for names in (_models_of_logs(files), unstamped, folders, stems):
        if len(set(names)) == len(files) and all(names):
            return _differing_parts(names)
    raise ValueError(
        f"{', '.join(files)}: the names of the files and of their folders do not distinguish "
        "the checkpoints; rename the files, give --names, or add a column checkpoint."
    )


def _differing_parts(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin or end with."""
    words = [re.split(r"_+", name) for name in names]
    if len(names) == 1:
        return list(names)
    for place in (0, -1):
        while min(map(len, words)) > 1 and len({name[place] for name in words}) == 1:
            words = [name[1:] if place == 0 else name[:-1] for name in words]
    return ["_".join(name) for name in words]


def _models_of_logs(files: Sequence[str]) -> list[str]:
    """Return the models of Inspect's logs; empty names for other files."""
    if not all(kind_of(file) == ".eval" for file in files):
        return []
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        return []
    headers = (read_eval_log(file, header_only=True) for file in files)
    return [header.eval.model.replace("/", "_") for header in headers]


def choose_columns(
    present: Sequence[str],
    needed: Collection[str],
    optional: Collection[str],
    given: Mapping[str, str],
) -> dict[str, str]:
    """Return the columns to read by their names in a file; refuse unclear names."""
    for column, given_column in given.items():
        option = f"--columns {column}={given_column}"
        if column not in needed and column not in optional:
            expected = ", ".join([*needed, *optional])
            raise UserTableError(
                f"{option}: there is no column {column!r} to give; give {expected}"
            )
        if given_column not in present:
            raise UserTableError(
                f"{option}: it has no {given_column!r}, but {', '.join(present)}"
            )
        if column in present and column != given_column:
            raise UserTableError(
                f"{option}: it has a column {column!r}, too; rename one of them"
            )
    chosen = {given_column: column for column, given_column in given.items()}
    chosen |= {n: n for n in present if n not in chosen and (n in needed or n in optional)}
    spare = [name for name in present if name not in chosen]
    lacking = [name for name in needed if name not in chosen.values()]
    if lacking:
        raise UserTableError(f"column {lacking[0]!r} is missing; {_remedy(lacking, spare)}")
    for name in spare:
        if close := get_close_matches(name, set(optional) - set(chosen.values()), 1, 0.85):
            raise UserTableError(
                f"column {name!r} looks like {close[0]!r}; give --columns {close[0]}={name}, "
                "or rename it"
            )
    return chosen


def _remedy(lacking: Sequence[str], spare: Sequence[str]) -> str:
    """Return the option with the user's own columns, if any can be meant."""
    by_lower = {name.lower(): name for name in reversed(spare)}
    guesses = {
        name: by_lower[synonym]
        for name in lacking
        for synonym in reversed(OTHER_NAMES.get(name, ()))
        if synonym in by_lower
    }
    if guesses:
        words = " ".join(f"{column}={given_column}" for column, given_column in guesses.items())
        return f"give --columns {words} if these are meant"
    if spare:
        return f"if {spare[0]!r} is meant, give --columns {lacking[0]}={spare[0]}"
    return "add it to every row"


def _note_ignored(ignored: Sequence[str]) -> list[str]:
    if not ignored:
        return []
    names = ", ".join(name or "(no name)" for name in dict.fromkeys(ignored))
    log.warning("Ignored columns: %s", names)
    return [f"Ignored columns: {names}."]


def _check_names(
    names: Mapping[str, str], unnamed: Collection[str], frames: Sequence[pd.DataFrame]
) -> None:
    """Refuse a file named like a checkpoint in the column of another file."""
    for file, rows in zip(names, frames, strict=True):
        stated = set() if file in unnamed else set(rows["checkpoint"].astype(str))
        for file_of in unnamed:
            if names[file_of] in stated:
                raise ValueError(
                    f"{file_of}: has no column 'checkpoint', so its checkpoint is called "
                    f"{names[file_of]!r}, and {file} has another checkpoint of this name; add "
                    "the column, or rename the file."
                )


def _read_predictions(
    files: Mapping[str, str], unnamed: Collection[str], reading: Reading
) -> PredictionTables:
    frames: list[pd.DataFrame] = []
    ignored: list[str] = []
    for file, name in files.items():
        with name_files_in_errors(file):
            defaults = {**DEFAULTS, "checkpoint": name}
            defaults |= {"correct": "0"} if file == reading.unlabelled else {}
            batches = _prediction_batches(file, defaults, reading.columns, ignored)
            rows = own_predictions.collect_rows(batches)
            frame = _select_estimators(rows, reading.estimators)
        if len(files) > 1:
            frame["row"] = [f"{row} of {file}" for row in frame["row"]]
        frames.append(frame)
    _check_names(files, unnamed, frames)
    rows = pd.concat(frames, ignore_index=True) if frames[1:] else frames[0]
    for name in own_predictions.NAMES:
        rows[name] = pd.api.types.union_categoricals([frame[name] for frame in frames])
    checkpoints, predictions = checkpoints_by_model(rows), {}
    with name_files_in_errors(*files):
        own_predictions.check_spelling(rows)
        for model, dataset in distinct_rows(rows, PLACE):
            may_be_equal = dict.fromkeys(checkpoints[model], False)
            own_predictions.check_predictions(rows, [dataset], {model: may_be_equal})
            place = {"model": model, "dataset": dataset}
            chosen = select_rows(rows, place)
            predictions[model, dataset, IMPORTED] = stack(
                [(chosen, place)], artifacts.PREDICTIONS
            )
    notes = _note_ignored(ignored)
    return PredictionTables(checkpoints, predictions, imported_answers(rows), notes=notes)


def _select_estimators(rows: pd.DataFrame, estimators: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the chosen estimators, or all rows if none is chosen."""
    given = rows["estimator"].astype(str)
    if missing := [name for name in estimators if name not in set(given)]:
        raise ValueError(
            f"there is no estimator {missing[0]!r}; choose from {', '.join(sorted(set(given)))}"
        )
    return rows[given.isin(estimators)].reset_index(drop=True) if estimators else rows


def _prediction_batches(
    file: str, defaults: Mapping[str, str], columns: Mapping[str, str], ignored: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of predictions, with the columns that it can lack."""
    needed = [name for name in own_predictions.KNOWN if name not in defaults]
    needed.remove("train_dataset")

    def choose(present: Sequence[str]) -> dict[str, str]:
        chosen = choose_columns(present, needed, [*defaults, "train_dataset"], columns)
        ignored.extend(name for name in present if name not in chosen)
        return chosen

    columns_known = {*own_predictions.KNOWN, *columns.values()}
    for batch in read_batches(file, known=columns_known, choose=choose):
        for name, value in defaults.items():
            if name not in batch.schema.names:
                batch = batch.append_column(name, pa.array([value] * len(batch)))
        yield batch


def _read_answers(
    files: Mapping[str, str], unnamed: Collection[str], reading: Reading
) -> PredictionTables:
    parts: list[pd.DataFrame] = []
    ignored: list[str] = []
    for file, name in files.items():
        defaults = {"model": "model", "checkpoint": name, "dataset": "dataset"}
        entry = {"file": file}
        entry |= {"labels": reading.labels} if reading.labels else {}
        entry |= {"filter": reading.filter} if reading.filter else {}
        prepare = partial(_prepare_answers, columns=reading.columns, ignored=ignored)
        parts.append(
            read_answers(entry, several=len(files) > 1, defaults=defaults, prepare=prepare)
        )
    _check_names(files, unnamed, parts)
    with name_files_in_errors(*files):
        rows, left_out = _test_rows(parts)
        inputs = rate_answers(
            rows, reading.estimators, beams=reading.beams, is_deployed=bool(reading.deployed)
        )
    inputs.notes += [*left_out, *_note_ignored(ignored)]
    return inputs


def _read_options(
    files: Mapping[str, str], unnamed: Collection[str], reading: Reading
) -> PredictionTables:
    parts: list[pd.DataFrame] = []
    normalisation, notes = reading.normalisation or "none", []
    for file, name in files.items():
        entry, start = {"file": file}, file.removesuffix("-predictions.jsonl")
        if start != file and Path(requests := f"{start}-requests.jsonl").exists():
            entry["requests"] = requests
            notes.append(f"The texts of {file} are those of {requests}.")
        defaults = {"model": "model", "checkpoint": name, "dataset": "dataset"}
        several = len(files) > 1
        parts.append(read_options(entry, normalisation, several=several, defaults=defaults))
    _check_names(files, unnamed, parts)
    with name_files_in_errors(*files):
        rows, left_out = _test_rows(parts)
        inputs = rate_options(rows, reading.estimators, normalisation=normalisation)
    inputs.notes += [*notes, *left_out]
    return inputs


def _test_rows(parts: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of the split test, and a note about the other rows."""
    rows = pd.concat(parts, ignore_index=True)
    is_test = rows["split"] == "test"
    if not is_test.any():
        raise UserTableError("no row has the split test; only these are evaluated")
    n_skipped = int((~is_test).sum())
    skipped = f"Left out: {n_skipped:,} answers of the split train, which is not evaluated."
    return rows[is_test], [skipped] if n_skipped else []


def _prepare_answers(
    rows: pd.DataFrame, columns: Mapping[str, str], ignored: list[str]
) -> pd.DataFrame:
    """Return the known columns of a file of answers; labels can be 1 and 0 in `correct`."""
    stated = [str(name) for name in rows if name_stated(str(name)) and name not in columns]
    named = [name for name in columns if name_stated(name)]
    needed = [name for name in own_answers.NEEDED if name not in own_answers.NAMES[:3]]
    optional = [*own_answers.NAMES[:3], *own_answers.OPTIONAL, *stated, *named, "correct"]
    if {"correct", "label"} & {*columns, *map(str, rows)}:
        needed.remove("references")  # labels are given
        optional.append("references")
    chosen = choose_columns([*map(str, rows)], needed, optional, columns)
    ignored.extend(str(name) for name in rows if name not in chosen)
    renamed = rows[list(chosen)].rename(columns=chosen)
    if "references" not in renamed:
        renamed["references"] = "(labels are given)"
    if "correct" not in renamed:
        return renamed
    if "label" in renamed:
        raise UserTableError("has the columns 'label' and 'correct'; keep one")
    meaning = {"1": "correct", "true": "correct", "0": "incorrect", "false": "incorrect"}
    words = [str(value).strip().lower().removesuffix(".0") for value in renamed.pop("correct")]
    for row, word in enumerate(words, start=1):
        if word not in meaning:
            raise UserTableError(f"row {row} has {word!r} in the column correct; give 1 or 0")
    return renamed.assign(label=[meaning[word] for word in words])

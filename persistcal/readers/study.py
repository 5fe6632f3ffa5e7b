"""Read files of predictions, answers or scored options as the tables of an evaluation."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.answers.halves import HALVINGS
from persistcal.evaluation.predictions import NO_CONFIDENCE
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.questions.labels import parse_label
from persistcal.readers import columns as tables
from persistcal.readers import harness_logs
from persistcal.readers import predictions as own_predictions
from persistcal.readers.answer_files import read_answers, read_options
from persistcal.readers.answers import GIVEN, name_stated, settle_stated
from persistcal.readers.columns import (
    KNOWN,
    NAMES,
    ColumnChoice,
    Hint,
    guess_columns,
    lacking_error,
    match_columns,
)
from persistcal.readers.inputs import (
    IMPORTED,
    SUBJECT,
    PredictionTables,
    check_pairs,
    check_spellings,
    checkpoint_names,
    checkpoints_by_model,
    describe_left_out,
    distinct_rows,
    stack,
)
from persistcal.readers.predictions import DEFAULTS, LABELS_ONLY, imported_answers
from persistcal.readers.reading import ANSWERS, OPTIONS, PREDICTIONS, USUAL, Reading
from persistcal.readers.rules import SEVERAL_IDS, RepeatedError, as_label, content_of
from persistcal.readers.scales import (
    PROBABILITIES,
    Scale,
    is_missing,
    missing_error,
    parse_scale,
)
from persistcal.readers.versions import (
    USED,
    VersionFile,
    check_by,
    explain_tasks,
    files_of_version,
    list_sources,
    name_checkpoints,
    name_other_asking,
    read_slices,
    slice_names,
)
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.tables import select_rows
from persistcal.store.user_files import (
    JSON,
    TABLES,
    UserTableError,
    columns_of,
    first_rows,
    is_inspect_log,
    kind_of,
    list_names,
    name_files_in_errors,
    paths_of,
    plain_name,
    read_file,
)

log = logging.getLogger(__name__)

LEAST_TRUTHS = 0.5  # share of a column's values that are truth values, if it can be `correct`
LOGS = (harness_logs.LM_EVAL_KEYS, harness_logs.OLMES_KEYS)  # columns of logs in JSON lines
MOST_HINTS = 5  # refusals, one after the other, that are answered with an option


def read_study(files: Sequence[str], reading: Reading = USUAL) -> PredictionTables:
    """Read files of answers, of scored options or of predictions, and their second asks.

    A folder, or a pattern such as ``v1/*.jsonl``, contains the files of one version. Options
    that a refusal names were tried on the files.
    """
    try:
        return _read_asks(files, reading)
    except UserTableError as error:
        if not isinstance(error.hint, Hint):
            raise
        raise _try_hint(error, error.hint, files, reading) from error


def _read_asks(files: Sequence[str], reading: Reading) -> PredictionTables:
    if not 1 <= (reading.halvings or 1) <= HALVINGS:
        raise ValueError(f"--halvings is {reading.halvings}; give 1 to {HALVINGS}.")
    inputs = _read_asked(files, reading)
    if reading.again:
        inputs = _ask_again(inputs, files, reading)
    if reading.greedy:
        inputs.declare_greedy()
    read = chain.from_iterable(map(files_of_version, [*files, *reading.again]))
    inputs.digests = {str(name): sha256(name) for name in read}
    return inputs


def _try_hint(
    error: UserTableError, hint: Hint, files: Sequence[str], reading: Reading
) -> UserTableError:
    """Return a refusal with all options that the files need, or with the next problem."""
    listed = [file for name in files for file in files_of_version(name)]
    hint = hint.join(Hint(_version_column(listed, {**hint.columns, **reading.columns})))
    for _ in range(MOST_HINTS):
        columns = {**hint.columns, **reading.columns}
        scale = reading.scale or PROBABILITIES
        if hint.scale:
            ends = parse_scale(hint.scale, None, is_uncertainty=False)
            scale = replace(scale, low=ends.low, high=ends.high)
        if hint.uncertainty:
            columns["confidence"] = hint.uncertainty
            scale = replace(scale, is_uncertainty=True)
        logging.disable(logging.WARNING)
        try:
            study = _read_asks(files, replace(reading, columns=columns, scale=scale))
            if len(files) == 1 or study.has_common() or hint == hint.with_text_as_id():
                return UserTableError(error.problem, hint)
            hint = hint.with_text_as_id()
        except ValueError as next_error:
            further = getattr(next_error, "hint", None)
            further = hint.join(further) if isinstance(further, Hint) else hint
            if SEVERAL_IDS in str(next_error):
                further = hint.with_text_as_id()
            if further != hint:
                hint = further
                continue
            return UserTableError(f"{error.problem}; {hint} does not suffice: {next_error}")
        finally:
            logging.disable(logging.NOTSET)
    return UserTableError(error.problem, hint)


def _ask_again(
    inputs: PredictionTables, files: Sequence[str], reading: Reading
) -> PredictionTables:
    """Add the files of a second ask; refuse files that are not one."""
    second_files = list(reading.again)
    if len(second_files) > len(files):
        raise ValueError(
            f"--again gives {len(second_files)} files for {len(files)}; give a second ask of "
            "each file, in the same order, or of some."
        )
    contents = {
        Path(name).read_bytes(): name for file in files for name in files_of_version(file)
    }
    for file in (name for version in second_files for name in files_of_version(version)):
        first = contents.get(Path(file).read_bytes()) if Path(file).is_file() else None
        if first and not reading.greedy:
            raise ValueError(
                f"{file}: is a copy of {first}; ask the same questions again, or leave --again "
                "out."
            )
    names = list(dict.fromkeys(n for names in inputs.checkpoints.values() for n in names))
    has_names = bool(reading.names) or len(names) == len(files)
    if has_names and len(second_files) < len(files):
        inside = ([n for n in names if n in Path(file).name] for file in second_files)
        names = [
            max(found, key=len, default=Path(file).stem)  # the longest version in its name
            for file, found in zip(second_files, inside, strict=True)
        ]
    named = replace(reading, names=names if has_names else ())
    try:
        second = _read_asked(second_files, named)
    except ValueError as error:
        if not has_names or "--names has no meaning" not in str(error):
            raise
        second = _read_asked(second_files, replace(reading, names=()))
    with name_files_in_errors(*second_files):
        inputs.ask_again(second, second_files, greedy=bool(reading.greedy))
    return inputs


def _read_asked(files: Sequence[str], reading: Reading) -> PredictionTables:
    """Read files of one ask."""
    _check_files(files, reading)
    versions = {name: files_of_version(name) for name in files}
    arguments, files = files, [file for listed in versions.values() for file in listed]
    kinds, unnamed, logs = [], [], []
    for file in files:
        kind, columns = _kind_and_columns(file, reading)
        kinds.append(kind)
        if not columns or any(keys <= columns for keys in LOGS):
            logs.append(file)
        _check_use(reading, kind, file, is_log=file in logs)
        if "checkpoint" not in columns:
            unnamed.append(file)
        elif reading.names:
            raise ValueError(
                f"{file}: has a column checkpoint, so --names has no meaning; leave one out."
            )
    kind = kinds[0]
    for file, kind_of_file in zip(files, kinds, strict=True):
        if kind_of_file != kind:
            raise ValueError(
                f"{file}: contains {kind_of_file} and {files[0]} {kind}; give only "
                f"{kind_of_file} or only {kind}."
            )
    read = {PREDICTIONS: _read_predictions, ANSWERS: _read_answers, OPTIONS: _read_options}
    try:
        names = dict(zip(arguments, reading.names or name_checkpoints(arguments), strict=True))
        if unnamed:
            check_spellings({", ".join(arguments): list(names.values())})
        sources = list_sources(
            versions, {n: name.strip() for n, name in names.items()}, reading.pool
        )
        if reading.is_unlabelled:
            last = versions[arguments[-1]]
            sources = [s._replace(is_labelled=s.file not in last) for s in sources]
        columns_read = ColumnChoice(reading.columns, reading.by)
        scale = reading.scale or PROBABILITIES
        asked = FilesOfAsk(sources, unnamed, logs, reading, columns_read, files, scale)
        study = read[kind](asked)
        study.notes += asked.columns.notes()
        study.slices = read_slices(sources, reading) if reading.by else None
    except ValueError as error:
        if remedy := explain_tasks(arguments):
            raise UserTableError(f"{error}{remedy}") from error
        raise
    check_spellings(study.checkpoints)
    return study


def _pooled(rows: pd.DataFrame, source: VersionFile) -> pd.DataFrame:
    """Return the rows of a file, with ids that are unique in the pooled dataset."""
    if not source.category:
        return rows
    ids = source.category + ":" + rows["question_id"].astype(str)
    return rows.assign(question_id=ids, category=source.category)


def _kind_and_columns(file: str, reading: Reading) -> tuple[str, set[str]]:
    """Return the kind of a file, and its columns by the names that this project uses."""
    names_known = {*KNOWN, *reading.columns.values()}
    if is_inspect_log(file):
        return ANSWERS, set()
    with name_files_in_errors(file):
        present, scores_options = _columns_and_scores(file, names_known)
    matched = match_columns(present, KNOWN, reading.columns)
    columns = {matched.get(name, name) for name in present} | reading.columns.keys()
    has_answers = bool({"answer", "option_logprobs", "doc_id"} & columns)
    is_open = not reading.is_unlabelled or "confidence" not in columns
    if is_open and not has_answers and not {"confidence", "correct"} <= columns:
        if absent := sorted({*reading.columns.values()} - {*present}):
            raise ValueError(
                f"{file}: has no column {absent[0]!r}, but {list_names(present)}; correct the "
                "name in --columns or --uncertainty."
            )
        if len(present) == 1 and kind_of(file) in TABLES:
            raise ValueError(
                f"{file}: the first line is one column, {present[0]!r}; write the names of the "
                "columns there, with commas between them."
            )
        hint = _guess_kind(columns, present, matched, _fits(file))
        is_hinted = "answer" in hint.columns or (hint != Hint() and "confidence" not in columns)
        if is_hinted or not {"confidence", "correct", "label"} & columns:
            with name_files_in_errors(file):
                raise lacking_error(
                    "has neither the columns 'confidence' and 'correct' of predictions nor "
                    "the column 'answer' of answers",
                    "confidence",
                    hint,
                )
    # Predictions can have their answers' texts; without labels answers are matched.
    is_labelled = "correct" in columns or not {"question", "references", "label"} & columns
    if "confidence" in columns and (is_labelled or "answer" not in columns):
        return PREDICTIONS, columns
    if "correct" in columns and not has_answers:
        return PREDICTIONS, columns
    is_scored = "option_logprobs" in columns or ("doc_id" in columns and scores_options)
    return OPTIONS if is_scored else ANSWERS, columns


def _columns_and_scores(file: str, known_names: Collection[str]) -> tuple[list[str], bool]:
    """Return the columns of a file, and whether it is a log that scores given options."""
    rows = read_file(file, known_names=known_names) if kind_of(file) in JSON else None
    columns = columns_of(file, known_names=known_names) if rows is None else paths_of(rows)
    logged = {name.partition(".")[0] for name in columns}
    if not logged >= harness_logs.LM_EVAL_KEYS:
        return columns, logged >= harness_logs.OLMES_KEYS
    log = read_file(file, known_names=known_names) if rows is None else rows
    return [*map(str, log)], harness_logs.scores_options(log)


def _check_use(reading: Reading, kind: str, file: str, *, is_log: bool) -> None:
    """Refuse options that have no meaning for files of a kind, or for logs."""
    for option in fields(reading):
        value, use = getattr(reading, option.name), option.metadata
        if not use or value in (option.default, {}) or value is None:
            continue
        if is_log and not use["is_for_logs"]:
            described = f"is a log, so {_flags_of(option.name, use)}"
        elif kind not in use["kinds"]:
            described = f"contains {kind}, so {_flags_of(option.name, use)}"
        else:
            continue
        raise ValueError(f"{file}: {described} has no meaning; leave it out.")


def _flags_of(name: str, use: Mapping[str, Any]) -> str:
    """Return the options of a field, as a sentence lists them."""
    *first, last = [
        flag for flags in use["flags"] or [f"--{name}"] for flag in flags.split("/")
    ]
    return f"{', '.join(first)} or {last}" if first else last


def _guess_kind(
    columns: Collection[str],
    present: Sequence[str],
    matched: Mapping[str, str],
    fits: Callable[[str, str], bool],
) -> Hint:
    """Return the options that make a file predictions, answers or labels."""
    spare = [name for name in present if name not in matched]
    has_labels = bool({"correct", "label"} & {*columns})
    for table, needed in (
        (tables.PREDICTIONS, ("confidence", "correct")),
        (tables.ANSWERS, ("answer",)),
        (tables.PREDICTIONS, ("correct",)),
    ):
        lacking = [n for n in table.names if n in tables.SYNONYMS and n not in columns]
        if needed == ("answer",) and has_labels:
            lacking = [name for name in lacking if name not in ("references", "correct")]
        if needed == ("correct",):
            spare = [name for name in present if matched.get(name, "label") == "label"]
        hint = guess_columns(lacking, spare, matched, fits)
        names = {*columns, *hint.columns, *(["confidence"] if hint.uncertainty else [])}
        if names >= {*needed}:
            return hint
    return Hint()


def _fits(file: str) -> Callable[[str, str], bool]:
    """Return a function that tests whether the values of a column suit the guessed name."""

    def fits(name: str, column: str) -> bool:
        if name not in ("confidence", "uncertainty", "correct"):
            return True
        values = [v for v in _column_values(file, column) if not is_missing(v)]
        kinds = {v: bool(as_label(v) or parse_label(str(v))) for v in dict.fromkeys(values)}
        share = sum(map(kinds.__getitem__, values)) / max(len(values), 1)
        if name == "correct":
            return share > LEAST_TRUTHS
        numbers = [PROBABILITIES.number(value) for value in kinds]
        is_number = bool(values) and not np.isnan(numbers).any()
        return share < 1 and (name == "confidence" or is_number)  # grades are not confidences

    return fits


def _column_values(file: str, column: str) -> list[object]:
    """Return the values of one column of a file."""
    rows = read_file(file, known_names={*KNOWN, column}, choose=lambda _: {column: column})
    return rows[column].tolist()


def _version_column(files: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the column that names the version of each file, if it is `model`."""
    if len(files) < 2 or {"checkpoint", "model"} & given.keys():
        return {}
    models = []
    for file in files:
        matched = match_columns(_columns_and_scores(file, KNOWN)[0], KNOWN, {})
        column = next((name for name, meaning in matched.items() if meaning == "model"), None)
        if column is None or "checkpoint" in matched.values():
            return {}
        models.append((column, set(_column_values(file, column))))
    names = {name for _, values in models for name in values}
    is_one_each = all(len(values) == 1 for _, values in models) and len(names) == len(files)
    return {"checkpoint": models[0][0]} if is_one_each else {}


def _check_files(files: Sequence[str], reading: Reading) -> None:
    """Refuse files that are missing or repeated, and names that do not fit them."""
    for column, n in Counter(reading.columns.values()).items():
        text_is_id = {c for c, name in reading.columns.items() if name == column}
        if n > 1 and text_is_id != {"question_id", "question"}:
            raise ValueError(f"--columns gives {column!r} {n} times; keep one.")
    for file in map(str, chain.from_iterable(map(files_of_version, files))):
        if not Path(file).exists():
            raise ValueError(f"{file}: there is no such file; correct its name.")
        if not Path(file).is_file():
            raise ValueError(f"{file}: is a folder or a pipe; give a file, or - for stdin.")
    if len({*map(os.path.realpath, files)}) < len(files):
        raise ValueError(f"{', '.join(files)}: a file is given twice; name each once.")
    names = {" ".join(name.split()) for name in reading.names} - {""}
    if reading.names and len(names) != len(files):
        raise ValueError(
            f"--names gives {', '.join(reading.names)} for {len(files)} files; give a "
            "different name to each file."
        )


class FilesOfAsk(NamedTuple):
    """The files of one ask, which are of one kind, and how they are read."""

    sources: Sequence[VersionFile]
    unnamed: Collection[str]  # files without a column checkpoint
    logs: Collection[str]
    reading: Reading
    columns: ColumnChoice
    files: Sequence[str]
    scale: Scale


def _check_names(ask: FilesOfAsk, frames: Sequence[pd.DataFrame]) -> None:
    """Refuse a file named like a checkpoint in the column of another file."""
    for file, rows in zip(ask.files, frames, strict=True):
        stated = set() if file in ask.unnamed else set(map(str, rows["checkpoint"].unique()))
        for source in ask.sources:
            if source.file in ask.unnamed and source.checkpoint in stated:
                raise ValueError(
                    f"{source.file}: has no column 'checkpoint', so its checkpoint is called "
                    f"{source.checkpoint!r}, and {file} has another checkpoint of this name; "
                    "add the column, or rename the file."
                )


def _check_datasets(sources: Sequence[VersionFile], frames: Sequence[pd.DataFrame]) -> None:
    """Refuse two files of a folder with the same questions and labels, as of two estimators."""
    first: dict[tuple[str, tuple[int, int]], VersionFile] = {}
    several = len({source.dataset for source in sources}) > 1
    for source, rows in zip(sources, frames, strict=True) if several else ():
        content = content_of(rows[["question_id", "correct"]].astype(str).drop_duplicates())
        other = first.setdefault((source.checkpoint, content), source)
        if other.dataset != source.dataset and rows["correct"].nunique() > 1:
            raise ValueError(
                f"{source.file}: has the questions and labels of {other.file}, and each file "
                "of a folder is a dataset; if the files are of two estimators, join them into "
                "one with the column estimator."
            )


def _read_predictions(ask: FilesOfAsk) -> PredictionTables:
    frames: list[pd.DataFrame] = []
    sources, files, reading = ask.sources, ask.files, ask.reading
    for source in sources:
        with name_files_in_errors(source.file):
            rows = own_predictions.collect_rows(
                _prediction_rows(source, ask), scale=ask.scale, lenient=True
            )
            names = rows["estimator"].astype(str)
            if missing := [name for name in reading.estimators if name not in set(names)]:
                listed = ", ".join(sorted({*names} - {NO_CONFIDENCE}))
                remedy = f"choose from {listed}" if listed else "add the column confidence"
                raise ValueError(f"there is no estimator {missing[0]!r}; {remedy}")
            if reading.estimators:
                rows = rows[names.isin(reading.estimators)].reset_index(drop=True)
        if len(files) > 1:
            rows["file"] = source.file
        frames.append(_pooled(rows, source).astype({"question_id": "category"}))
    _check_names(ask, frames)
    _check_datasets(sources, frames)
    lacking = [bool((frame["estimator"] == NO_CONFIDENCE).all()) for frame in frames]
    if any(lacking) and not all(lacking):
        bare, rated = (files[lacking.index(lacks)] for lacks in (True, False))
        raise ValueError(
            f"{bare}: has no column 'confidence', and {rated} has one; add it, or leave the "
            "column out of all files to compare accuracies."
        )
    rows = pd.concat(frames, ignore_index=True) if frames[1:] else frames[0]
    for name in own_predictions.NAMES:
        rows[name] = pd.api.types.union_categoricals([frame[name] for frame in frames])
    narrow = [name for f in frames for name in f.attrs.get(own_predictions.NARROW, ())]
    with name_files_in_errors(*files):
        rows = own_predictions.settle_rows(rows, ask.scale, narrow)
        rows, notes = _complete(rows, reading.missing)
        try:
            study = _prediction_tables(
                rows, may_be_equal=reading.is_unlabelled, greedy=bool(reading.greedy)
            )
        except RepeatedError as error:
            unnamed = ["checkpoint"] if ask.unnamed else []
            hint = guess_columns(unnamed, ask.columns.ignored, {}, _fits(files[0]))
            raise UserTableError(error.problem, hint if hint != Hint() else None) from None
    study.notes += [*notes, *ask.scale.describe()]
    return study


def _prediction_tables(
    rows: pd.DataFrame, *, may_be_equal: bool, greedy: bool
) -> PredictionTables:
    """Return checked predictions as tables; two checkpoints `may_be_equal`."""
    checkpoints, predictions = checkpoints_by_model(rows), {}
    own_predictions.check_spelling(rows)
    for model, dataset in distinct_rows(rows, SUBJECT):
        equal = {model: dict.fromkeys(checkpoints[model], may_be_equal)}
        own_predictions.check_predictions(rows, [dataset], equal, greedy=greedy)
        subject = {"model": model, "dataset": dataset}
        parts = [(select_rows(rows, subject), subject)]
        predictions[model, dataset, IMPORTED] = stack(parts, artifacts.PREDICTIONS)
    text = "Labels only: accuracies are compared, and nothing is said on confidence."
    notes = [text] if (rows["estimator"] == NO_CONFIDENCE).all() else []
    return PredictionTables(checkpoints, predictions, imported_answers(rows), notes=notes)


def read_predictions(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str] | None,
    settings: EvaluationSettings,
    *,
    labels_only: bool = False,
    greedy: bool = False,
    by: Sequence[str] = (),
) -> PredictionTables:
    """Return a notebook's predictions as tables, of all checkpoints unless some are given.

    With `labels_only`, the column confidence can be missing. `by` names columns of slices.
    """
    names = [] if checkpoints is None else checkpoint_names(checkpoints)
    if names:
        check_pairs(settings.pairs, names)
    with name_files_in_errors("predictions"):
        given = own_predictions.frame_rows(predictions, names, labels_only=labels_only)
        collected = own_predictions.collect_rows(given)
        narrow = collected.attrs.get(own_predictions.NARROW, ())
        rows = own_predictions.settle_rows(collected, narrow=narrow)
        study = _prediction_tables(rows, may_be_equal=True, greedy=greedy)
        if by:
            check_by(by, [str(name) for name in predictions if name not in USED])
            table = predictions.assign(
                **{n: v for n, v in DEFAULTS.items() if n == "dataset" and n not in predictions}
            )
            study.slices = slice_names(table, by)
    for model, present in study.checkpoints.items():
        study.checkpoints[model] = list(dict.fromkeys([*names, *present]))
        check_pairs(settings.pairs, study.checkpoints[model])
    check_spellings(study.checkpoints)
    return study


def _complete(rows: pd.DataFrame, missing: str | None) -> tuple[pd.DataFrame, list[str]]:
    """Return predictions without missing values, and notes; refuse them unless `missing`."""
    lacking = rows[[*own_predictions.CAN_BE_MISSING]].isna()
    counts = {str(name): int(n) for name, n in lacking.sum().items()}
    is_lacking = lacking.any(axis="columns")
    notes: list[str] = []
    if is_lacking.any():
        if missing is None or (missing != "drop" and counts["correct"]):
            raise missing_error(counts, first=first_rows(rows[is_lacking].head(1)))
        if missing == "drop":
            what = "answers without a confidence or a label"
            key = [*SUBJECT, "checkpoint", "question_id"]
            rows, notes = _leave_out(rows, key, is_lacking, what)
            if rows.empty:
                raise UserTableError(
                    "no answer has a confidence and a label; nothing is left to read"
                )
        else:
            rows["confidence"] = rows["confidence"].fillna(float(missing))
            notes = [f"{counts['confidence']:,} missing confidences count as {missing}."]
    return rows.astype({"correct": bool}), notes


def _leave_out(
    rows: pd.DataFrame, key: list[str], is_left_out: pd.Series, what: str, where: str = ""
) -> tuple[pd.DataFrame, list[str]]:
    """Return rows without the keys of some rows, and a note on them."""
    keys = pd.MultiIndex.from_frame(rows[key].astype(str))
    left_out = keys.isin(keys[is_left_out.to_numpy(bool)])
    note = describe_left_out(len(keys[left_out].unique()), what, where)
    return rows[~left_out].reset_index(drop=True), [note]


def _prediction_rows(source: VersionFile, ask: FilesOfAsk) -> pd.DataFrame:
    """Return the rows of a file of predictions, with the columns that it can lack."""
    defaults, reading = DEFAULTS | source.names, ask.reading
    if not source.is_labelled:
        defaults["correct"] = "0"

    def choose(present: Sequence[str]) -> dict[str, str]:
        known = match_columns(present, KNOWN, reading.columns)
        if "confidence" not in {*present, *known.values(), *reading.columns}:
            defaults.update(LABELS_ONLY)
        needed = [name for name in tables.PREDICTIONS.needed if name not in defaults]
        optional = [*defaults, *tables.PREDICTIONS.optional]
        fits = _fits(source.file)
        chosen = ask.columns.choose(present, needed, optional, reading.columns, fits)
        unread = {"correct"} & set(defaults)
        return {given: name for given, name in chosen.items() if name not in unread}

    columns_known = {*tables.PREDICTIONS.names, *reading.columns.values()}
    rows = read_file(source.file, known_names=columns_known, choose=choose)
    return rows.assign(**{n: value for n, value in defaults.items() if n not in rows})


def _read_answers(ask: FilesOfAsk) -> PredictionTables:
    from persistcal.readers.rating import rate_answers

    parts: list[pd.DataFrame] = []
    failed: dict[str, list[str]] = {}
    is_greedy, says, reading = True, False, ask.reading
    for source in ask.sources:
        entry = {"file": source.file}
        for name in ("labels", "filter", "scorer", "errored", "stated"):
            entry |= {name: getattr(reading, name)} if getattr(reading, name) else {}
        choose = partial(_answer_columns, source=source, ask=ask)
        rows = read_answers(
            entry,
            several=len(ask.sources) > 1,
            defaults=source.names | {"references": GIVEN},
            choose=None if source.file in ask.logs else choose,
            scale=ask.scale,
        )
        failed[source.file] = rows.attrs.pop("failed")
        is_greedy &= rows.attrs.pop("greedy")
        says |= rows.attrs.pop("says")
        rows["no_label"] &= source.is_labelled
        parts.append(_pooled(rows, source))
    other_asking = [*name_other_asking(parts)]
    _check_names(ask, parts)
    if reading.is_unlabelled:
        _borrow_references(parts)
    with name_files_in_errors(*ask.files):
        rows, notes = _test_rows(settle_stated(pd.concat(parts, ignore_index=True), ask.scale))
        rows, left_out = _labelled(rows, reading.missing)
        rows, errors = _without_errors(rows, ask, failed)
        inputs = rate_answers(
            rows,
            reading.estimators,
            beams=reading.beams,
            is_deployed=bool(reading.deployed),
            missing=reading.missing,
            halvings=(reading.halvings or HALVINGS) if reading.is_crossed else 0,
        )
    if is_greedy and not inputs.is_greedy and not inputs.samples_differ:
        inputs.is_greedy = True
        notes = ["Answers are greedy: the logs have the temperature 0.", *notes]
    inputs.notes += [
        *other_asking,
        *["Most replies state a confidence (Confidence: 85%); --stated reads it."] * says,
        *notes,
        *left_out,
        *errors,
        *ask.scale.describe(),
    ]
    return inputs


def _answer_columns(
    present: Sequence[str], *, source: VersionFile, ask: FilesOfAsk
) -> dict[str, str]:
    """Return the columns of a file of answers; labels can be 1 and 0 in `correct`.

    The question's text can be its id.
    """
    given, labels = dict(ask.reading.columns), {"correct", "label"}
    is_labelled = labels & {*match_columns(present, labels, given).values()}
    if not source.is_labelled:
        unread = match_columns(present, labels, given)
        present = [name for name in present if name not in unread]
        given = {name: column for name, column in given.items() if name not in labels}
    needed = [name for name in tables.ANSWERS.needed if name not in NAMES[:3]]
    text = given.get("question_id")
    if text == given.get("question", "question") and "question_id" not in present:
        del given["question_id"]
        needed.remove("question_id")
    stated = [plain_name(n) for n in present if name_stated(plain_name(n)) and n not in given]
    named = [name for name in given if name_stated(name)]
    optional = [*NAMES[:3], *tables.ANSWERS.optional, *stated, *named]
    if not source.is_labelled or is_labelled:
        needed.remove("references")  # labels are in the file or in a sheet
        optional.append("references")
    return ask.columns.choose(present, needed, optional, given, _fits(source.file))


def _borrow_references(parts: Sequence[pd.DataFrame]) -> None:
    """Copy references of other files to questions without references, in place."""
    key = ["dataset", "question_id", "references"]
    rows = [row for part in parts for row in part[key].itertuples(index=False, name=None)]
    references = {(dataset, id_): texts for dataset, id_, texts in rows if texts != (GIVEN,)}
    for part in parts:
        listed = part[key].itertuples(index=False, name=None)
        part["references"] = [references.get((d, id_), texts) for d, id_, texts in listed]


def _labelled(rows: pd.DataFrame, missing: str | None) -> tuple[pd.DataFrame, list[str]]:
    """Return answers with labels, and notes; refuse missing labels unless they are dropped."""
    lacking = rows["no_label"]
    if not lacking.any():
        return rows, []
    n = int(lacking.sum())
    if missing != "drop":
        raise missing_error({"correct": n}, first=first_rows(rows[lacking].head(1)))
    # All checkpoints answer the same questions.
    what = f"questions with {n:,} answers without a label"
    return _leave_out(rows, ["dataset", "question_id"], lacking, what)


def _without_errors(
    rows: pd.DataFrame, ask: FilesOfAsk, failed: Mapping[str, Sequence[str]]
) -> tuple[pd.DataFrame, list[str]]:
    """Return answers without questions that failed at any version, and notes."""
    notes = [
        f"{file}: {len(ids):,} questions have a sample that ended with an error or a limit."
        for file, ids in failed.items()
        if ids
    ]
    if not notes or ask.reading.errored != "drop":
        return rows, notes + ["They count as wrong."] * bool(notes)
    ids = {
        (source.dataset, f"{source.category}:{name}" if source.category else name)
        for source in ask.sources
        for name in failed[source.file]
    }
    key = ["dataset", "question_id"]
    is_failed = pd.Series([(d, q) in ids for d, q in rows[key].to_numpy()])
    rows, left_out = _leave_out(rows, key, is_failed, "of these questions", " at all versions")
    return rows, notes + left_out


def _read_options(ask: FilesOfAsk) -> PredictionTables:
    from persistcal.readers.rating import rate_options

    parts: list[pd.DataFrame] = []
    normalisation, notes = ask.reading.normalisation or "none", []
    for source in ask.sources:
        file = source.file
        entry, start = {"file": file}, file.removesuffix("-predictions.jsonl")
        if start != file and Path(requests := f"{start}-requests.jsonl").exists():
            entry["requests"] = requests
            notes.append(f"The texts of {file} are those of {requests}.")
        rows = read_options(
            entry,
            normalisation,
            several=len(ask.sources) > 1,
            defaults=source.names,
            columns=ask.columns,
        )
        parts.append(_pooled(rows, source))
    _check_names(ask, parts)
    with name_files_in_errors(*ask.files):
        rows, left_out = _test_rows(pd.concat(parts, ignore_index=True))
        inputs = rate_options(rows, ask.reading.estimators, normalisation=normalisation)
    inputs.notes += [*notes, *left_out]
    return inputs


def _test_rows(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of the split test, and a note about the other rows."""
    is_test = rows["split"] == "test"
    if not is_test.any():
        raise UserTableError("no row has the split test; only these are evaluated")
    n_skipped = int((~is_test).sum())
    text = "answers of the split train, which is not evaluated"
    skipped = describe_left_out(n_skipped, text)
    return rows[is_test], [skipped] if n_skipped else []

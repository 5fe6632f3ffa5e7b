"""Collect imported predictions batch by batch, and refuse invalid or inconsistent rows."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from persistcal.evaluation.predictions import NO_CONFIDENCE, partly_shared, spelling_error
from persistcal.readers.columns import PREDICTIONS
from persistcal.readers.rules import (
    FIRST,
    check_asks,
    check_copies,
    check_one_row,
    content_of,
    number_asks,
    read_asks,
)
from persistcal.readers.scales import PROBABILITIES, Scale, is_missing, settle
from persistcal.store import user_files
from persistcal.store.artifacts import ANSWERS
from persistcal.store.user_files import (
    TRUTHS,
    UserTableError,
    check_groups,
    refuse,
    round_narrow,
)

log = logging.getLogger(__name__)

# A training dataset is the dataset by default
NAMES = ("model", "dataset", "checkpoint", "question_id", "train_dataset", "estimator")
FRAME = ("checkpoint", "question_id", "confidence", "correct")  # required in a notebook
# Columns that predictions can lack, and their value then; datasets are trained on themselves
DEFAULTS = {"model": "model", "dataset": "dataset", "estimator": "confidence", "seed": "0"}
LABELS_ONLY = {"confidence": "0", "estimator": NO_CONFIDENCE}
NUMERIC = ("seed", "confidence", "correct", "ask")
NARROW = "narrow"  # attribute: estimators with confidences that were float32
KEY = ["checkpoint", "question_id", "train_dataset", "estimator", "seed", "ask"]
RUN = ["train_dataset", "estimator", "seed"]
FEW, MOST_SLIPS = 0.1, 20  # share of rows and number of names that can be slips
CONTENT = ["question_id", "train_dataset", "estimator", "seed", "confidence", "correct"]
GIVE_LABEL = "give 0 or 1, or nothing if it was not attempted, and --missing drop"
CAN_BE_MISSING = ("confidence", "correct")  # columns with missing values if a caller allows it


class ScaleError(UserTableError):
    """Confidences are not on the expected scale."""


def check_columns(columns: Sequence[str]) -> dict[str, str]:
    """Return the names of all columns; refuse missing and unknown columns."""
    unknown = f"predictions may hold only {', '.join(PREDICTIONS.names)}"
    user_files.check_columns(columns, PREDICTIONS.needed, PREDICTIONS.optional, unknown=unknown)
    return {name: name for name in columns}


def collect_rows(
    batches: Iterable[pa.RecordBatch],
    *,
    checkpoints: Mapping[str, Collection[str]] | None = None,
    datasets: Collection[str] = (),
    scale: Scale = PROBABILITIES,
    lenient: bool = False,
) -> pd.DataFrame:
    """Return the rows that a study reads, or all rows without `checkpoints`.

    `row` is the row number in the file, from 1. A row takes about 50 bytes. If `lenient`,
    confidences can be missing (NaN), and labels too: the columns ``no_confidence`` and
    ``no_correct`` are true in these rows.
    """
    word_codes: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    parts: list[dict[str, NDArray[Any]]] = []
    skipped: Counter[tuple[str, str]] = Counter()
    first = 1
    for batch in batches:
        for field in batch.schema:
            if pa.types.is_nested(field.type):
                raise UserTableError(
                    f"column {field.name!r} holds a {field.type} in each row; give one value"
                )
        codes = {name: _codes(batch, name, word_codes[name]) for name in NAMES}
        row = np.arange(first, first + len(batch))
        first += len(batch)
        for name in NAMES:
            _check(codes[name] < 0, row, [""] * 3, f"{name} is empty", "fill it in")
        wanted = np.ones(len(row), dtype=bool)
        if checkpoints is not None:
            wanted = _wanted(codes, word_codes, checkpoints, datasets, skipped)
        part: dict[str, NDArray[Any]] = {name: codes[name][wanted] for name in NAMES}
        kept = batch.filter(pa.array(wanted))
        part |= {"row": row[wanted], **_numbers(kept, row[wanted], scale, lenient)}
        for name in {"ask", "group"} & {*kept.schema.names}:
            part[name] = kept.column(name).to_pandas().to_numpy(object)
        parts.append(part)
    for (kind, name), count in skipped.items():
        log.warning("Skipped %d rows of %s %r, which is not in the study", count, kind, name)
    if not sum(len(part["row"]) for part in parts):
        if checkpoints is None:
            raise UserTableError("holds no row; give one for each answer")
        raise UserTableError(
            f"no row belongs to the study's models ({', '.join(checkpoints)}), their "
            f"evaluation checkpoints and its datasets ({', '.join(datasets)})"
        )
    frame: dict[str, Any] = {}
    for name in list(parts[0]):
        column = np.concatenate([part.pop(name) for part in parts])  # frees the parts
        if name in word_codes:
            frame[name] = pd.Categorical.from_codes(column, pd.Index(list(word_codes[name])))
        else:
            frame[name] = column
    frame["ask"] = read_asks(pd.Series(frame["ask"])) if "ask" in frame else np.int8(FIRST)
    if "group" in frame:
        texts = ["" if text is None or text != text else str(text) for text in frame["group"]]
        frame["group"] = np.array(texts, object)
        check_groups(frame["group"], frame["question_id"])
    rows = pd.DataFrame({"group": "", **frame}, copy=False)
    kind = batch.schema.field("confidence").type
    if pa.types.is_floating(kind) and str(kind) != "double":
        # Batches have these numbers as float64.
        stored = frame["confidence"].astype(kind.to_pandas_dtype())
        rows["confidence"] = rounded = round_narrow(stored, "confidence")
        changed = (rounded != stored) & ~np.isnan(rounded)
        rows.attrs[NARROW] = sorted(set(rows.loc[changed, "estimator"]))
    return rows


def settle_rows(
    rows: pd.DataFrame, scale: Scale = PROBABILITIES, narrow: Collection[str] = ()
) -> pd.DataFrame:
    """Return the rows of all files with confidences of `settle` and asks from 0."""
    numbers, owners = rows["confidence"].to_numpy(), rows[["model", "checkpoint", "estimator"]]
    rows["confidence"] = settle(numbers, owners, scale, narrow)
    rows["ask"] = number_asks(rows["ask"])
    return rows


def frame_batch(
    predictions: pd.DataFrame, checkpoints: Collection[str], *, labels_only: bool = False
) -> pa.RecordBatch:
    """Return the rows of a notebook's frame as a file's, of all or the given checkpoints."""
    if not isinstance(predictions, pd.DataFrame):
        raise UserTableError(
            f"is {type(predictions).__name__}, not a DataFrame; give one row per "
            "answer that an estimator judged"
        )
    if predictions.columns.nlevels > 1:
        raise UserTableError("the columns have several levels; give columns with one name")
    if indexed := [name for name in predictions.index.names if name in PREDICTIONS.names]:
        raise UserTableError(f"{indexed[0]!r} is in the index; call reset_index() first")
    rows = predictions[[name for name in predictions if name in PREDICTIONS.names]]
    if labels_only and not {"confidence", "estimator"} & set(rows):
        rows = rows.assign(**LABELS_ONLY)
    user_files.check_columns(list(rows), FRAME, PREDICTIONS.names, unknown="")
    if checkpoints:
        names = rows["checkpoint"].astype(str)
        is_chosen = names.isin(checkpoints)
        for left_out, count in names[~is_chosen].value_counts().items():
            log.warning(
                "Skipped %d rows of checkpoint %r, which is not chosen", count, left_out
            )
        if len(rows) and not is_chosen.any():
            raise UserTableError(f"no row has one of the checkpoints {', '.join(checkpoints)}")
        rows = rows[is_chosen]
    rows = rows.assign(**{n: value for n, value in DEFAULTS.items() if n not in rows})
    return pa.RecordBatch.from_arrays([_arrow(rows[name]) for name in rows], names=list(rows))


def _arrow(column: pd.Series) -> pa.Array:
    """Return a column of any type as texts or, if it has them, numbers and truth values."""
    dtype = column.dtype
    is_number = pd.api.types.is_numeric_dtype(dtype) and not np.iscomplexobj(column)
    if column.name in NUMERIC and (is_number or pd.api.types.is_bool_dtype(dtype)):
        native = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
        return pa.array(column.astype(native), from_pandas=True)
    words = column.astype(str).astype("category")
    return pa.array(words.where(column.notna()), from_pandas=True)


def _codes(batch: pa.RecordBatch, name: str, word_codes: dict[str, int]) -> NDArray[np.int32]:
    """Return each word's index in `word_codes`, or -1 for a missing word; append new words."""
    # A training dataset that is not given is the dataset.
    column = batch.column(name if name in batch.schema.names else "dataset")
    codes = _by_word(
        column, lambda word: word_codes.setdefault(word, len(word_codes)) if word else -1, -1
    )
    return codes.astype(np.int32)


def _by_word(column: pa.Array, read: Callable[[str], Any], missing: object) -> NDArray[Any]:
    """Apply `read` to the text of each value, once per distinct text."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    values = [read(word) for word in column.dictionary.cast(pa.string()).to_pylist()]
    places = pc.fill_null(column.indices.cast(pa.int64()), len(values))
    return np.array([*values, missing])[places.to_numpy(zero_copy_only=False)]


def _wanted(
    codes: Mapping[str, NDArray[np.int32]],
    word_codes: Mapping[str, Mapping[str, int]],
    checkpoints: Mapping[str, Collection[str]],
    datasets: Collection[str],
    skipped: Counter[tuple[str, str]],
) -> NDArray[np.bool_]:
    """Return which rows belong to the study, and count the rest in `skipped`."""

    def among(name: str, allowed: Collection[str]) -> NDArray[np.bool_]:
        return np.isin(codes[name], [word_codes[name].get(word, -1) for word in allowed])

    is_listed = [among("model", [m]) & among("checkpoint", c) for m, c in checkpoints.items()]
    wanted = np.ones(len(codes["model"]), dtype=bool)
    for name, belongs in (
        ("model", among("model", checkpoints)),
        ("dataset", among("dataset", datasets)),
        ("checkpoint", np.any(is_listed, axis=0)),
    ):
        words = list(word_codes[name])
        counts = np.unique(codes[name][wanted & ~belongs], return_counts=True)
        skipped.update({(name, words[code]): int(n) for code, n in zip(*counts, strict=True)})
        wanted &= belongs
    return wanted


def _numbers(
    batch: pa.RecordBatch, row: NDArray[np.int64], scale: Scale, lenient: bool
) -> dict[str, NDArray[Any]]:
    """Return the checked numbers and labels of a batch; `row` contains its row numbers."""
    seed, confidence = _floats(batch.column("seed")), _on_scale(batch, scale)
    label = batch.column("correct")
    if pa.types.is_floating(label.type) or pa.types.is_integer(label.type):
        correct = _floats(label)
    else:
        correct = _by_word(label, lambda word: TRUTHS.get(word.strip().lower(), np.nan), np.nan)
    missing = {
        f"no_{name}": _are_missing(batch.column(name)) if lenient else np.zeros(len(row), bool)
        for name in CAN_BE_MISSING
    }
    shown_scale = f"[{scale.low:g}, {scale.high:g}]"
    for name, wrong, remedy in (
        ("seed", ~((seed == np.floor(seed)) & (np.abs(seed) < 2**53)), "give a whole number"),
        ("confidence", ~scale.holds(confidence), f"give a number in {shown_scale}"),
        ("correct", ~((correct == 0) | (correct == 1)), GIVE_LABEL),
    ):
        wrong = wrong & ~missing.get(f"no_{name}", np.zeros(len(row), bool))
        values = batch.column(name).filter(pa.array(wrong))[:3].to_pylist()
        kind = ScaleError if name == "confidence" else UserTableError
        _check(wrong, row, values, f"{name} is not valid", remedy, kind)
    correct = np.where(missing["no_correct"], 0, correct)
    return {
        "seed": seed.astype(np.int64),
        "confidence": confidence,
        "correct": correct.astype(bool),
        **(missing if lenient else {}),
    }


def _on_scale(batch: pa.RecordBatch, scale: Scale) -> NDArray[np.float64]:
    """Return the confidences as numbers on their scale, NaN if they cannot be read."""
    column = batch.column("confidence")
    numbers = np.array(_floats(column))
    unread = np.isnan(numbers) if not scale.words else np.ones(len(numbers), bool)
    if not unread.any() or pa.types.is_floating(column.type):
        return numbers
    numbers[unread] = _by_word(column.filter(pa.array(unread)), scale.number, np.nan)
    return numbers


def _are_missing(column: pa.Array) -> NDArray[np.bool_]:
    """Return which values of a column are missing."""
    if pa.types.is_floating(column.type):
        return np.isnan(_floats(column))
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.is_null().to_numpy(zero_copy_only=False)
    return _by_word(column, is_missing, True)


def _floats(column: pa.Array) -> NDArray[np.float64]:
    """Return a column as numbers, with NaN for other values."""
    try:
        numbers = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pd.to_numeric(column.to_pandas().astype(str), errors="coerce").to_numpy(float)
    return numbers.to_numpy(zero_copy_only=False)


def _check(
    wrong: NDArray[np.bool_],
    row: NDArray[np.int64],
    values: Sequence[object],
    problem: str,
    remedy: str,
    kind: type[UserTableError] = UserTableError,
) -> None:
    """Refuse `wrong` rows; the message shows the first `values`."""
    if wrong.any():
        locations = [f"row {number}" for number in row[wrong][:3]]
        shown = pd.DataFrame(
            {"location": locations, "value": values[: len(locations)]}, dtype=object
        )
        raise kind(str(refuse(problem, shown, "value", remedy)))


def check_predictions(
    rows: pd.DataFrame,
    datasets: Iterable[str],
    checkpoints: Mapping[str, Mapping[str, bool]],
    *,
    greedy: bool = False,
) -> None:
    """Refuse missing, repeated or copied predictions of a model and dataset."""
    for model, dataset in product(checkpoints, datasets):
        chosen = rows[(rows["model"] == model) & (rows["dataset"] == dataset)]
        if chosen.empty:
            raise UserTableError(
                f"no row is of model {model!r} and dataset {dataset!r}; add them, or take "
                "the model or the dataset out of the study"
            )
        check_one_row(chosen, KEY, "keep one")
        check_asks(chosen, greedy=greedy)
        chosen = chosen[chosen["ask"] == FIRST]
        parts = {
            str(c): part for c, part in chosen.groupby("checkpoint", sort=False, observed=True)
        }
        contents = [
            (model, name, content_of(part[CONTENT]), f" (from row {part['row'].iloc[0]})")
            for name, part in parts.items()
        ]
        check_copies("predictions", contents, checkpoints)
        if partly := partly_shared({name: part["question_id"] for name, part in parts.items()}):
            log.warning("%s, %s: %s", model, dataset, partly)


def check_spelling(rows: pd.DataFrame) -> None:
    """Refuse question ids that differ in spelling between checkpoints or models, and slips.

    A slip is only named if all estimators judged the same answers nevertheless.
    """
    for dataset, part in rows.groupby("dataset", sort=False, observed=True):
        if error := spelling_error(part):
            raise UserTableError(f"{dataset}: {error}")
    if slip := _find_slip(rows):
        answers = rows.groupby(["model", "dataset", "ask", "checkpoint"], observed=True)
        runs = rows.groupby(
            ["model", "dataset", "ask", "checkpoint", *RUN], observed=True, as_index=False
        ).size()
        sizes = runs.groupby(["model", "dataset", "ask", "checkpoint"], observed=True)["size"]
        n_runs = sizes.size().groupby(["model", "dataset", "ask"], observed=True).nunique()
        n_asked = answers["question_id"].nunique()
        if (n_runs > 1).any() or (sizes.min() != n_asked).any():
            raise UserTableError(slip)
        log.warning("%s", slip)


def _find_slip(rows: pd.DataFrame) -> str:
    """Return a question about a rare name that nearly equals a common one, or "".

    The other name lacks just these rows; models, datasets and questions must also look similar.
    """
    whole = ["model", "dataset", "checkpoint", "question_id", *RUN, "ask"]
    for column in ("model", "dataset", "checkpoint", "estimator", "seed", "question_id"):
        counts = rows[column].value_counts()
        counts, few_of = counts[counts > 0], FEW
        if column == "question_id":  # all others have the same number of rows
            counts, few_of = counts[counts < counts.max()], 0.5
        rare = [name for name in counts.index if counts[name] <= few_of * counts.max()]
        has_any_name = column in ("checkpoint", "estimator", "seed")
        key = [other for other in whole if other != column]
        run = [other for other in key if other != "question_id"]
        for name in rare if len(rare) <= MOST_SLIPS else ():
            few = rows[rows[column] == name]
            usual = {str(n): n for n in counts.index if counts[n] > counts[name]}
            n, likeness = (len(usual) or 1, 0.0) if has_any_name else (1, 0.8)
            for near in get_close_matches(str(name), list(usual), n, likeness):
                many = rows[rows[column] == usual[near]]
                runs = many[run].drop_duplicates()
                is_other = has_any_name and len(few.merge(runs, on=run)) < len(few)
                if not is_other and few.merge(many, on=key).empty:
                    return (
                        f"a new {column} {str(name)!r} ({len(few):,} rows, first row "
                        f"{few['row'].iloc[0]}); is it a slip of {near!r} ({len(many):,} "
                        "rows)? Correct it, or name it differently"
                    )
    return ""


def imported_answers(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the table ANSWERS; all estimators have the same, so the first is read."""
    usual = predictions[predictions["ask"] == FIRST]
    answers = usual.assign(split="test", answer=None, probability=float("nan"))
    answers = answers.drop_duplicates([*ANSWERS.file_columns, "question_id"])
    return answers[[*ANSWERS.file_columns, *ANSWERS.schema.names]]

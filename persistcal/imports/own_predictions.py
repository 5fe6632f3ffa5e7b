"""Read a table of somebody's own predictions in batches, and say which rows are wrong.

What is checked here needs one row, or the row's number in the file. Whether
estimators fit together is checked by `persistcal.evaluation.arrange.arrange`.
"""

import csv
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from persistcal.evaluation.question_ids import other_spellings, partly_shared
from persistcal.store.csv_text import decode, delimiter_of

log = logging.getLogger(__name__)

NAMES = ("model", "dataset", "checkpoint", "question_id", "train_dataset", "estimator")
NUMBERS = ("seed", "confidence", "correct")
OPTIONAL = ("train_dataset",)  # the dataset itself where it is not given
_LABELS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}


class OwnPredictionsError(ValueError):
    """The file of predictions is not what it should be."""


def check_columns(columns: Sequence[str]) -> None:
    """Refuse a file that lacks a column or has one that is not known."""
    known = [*NAMES, *NUMBERS]
    for name in columns:
        if name not in known:
            raise OwnPredictionsError(
                f"unknown column {name!r}; predictions may hold only {', '.join(known)}"
            )
    for name in known:
        if name not in columns and name not in OPTIONAL:
            raise OwnPredictionsError(f"column {name!r} is missing; add it to every row")
    if twice := [name for name, count in Counter(columns).items() if count > 1]:
        raise OwnPredictionsError(f"column {twice[0]!r} is there twice; keep one")


def heading_of(beginning: bytes) -> tuple[list[str], str]:
    """Return the checked columns of a CSV file that begins so, and their delimiter."""
    try:
        text = decode(beginning, whole=False).lstrip("\r\n")
    except ValueError as error:
        raise OwnPredictionsError(str(error)) from error
    delimiter = delimiter_of(text, [*NAMES, *NUMBERS])
    columns = next(csv.reader(re.split("[\r\n]", text, maxsplit=1), delimiter=delimiter), [])
    check_columns(columns)
    return columns, delimiter


def collect_rows(
    batches: Iterable[pa.RecordBatch],
    *,
    checkpoints: Mapping[str, Collection[str]],
    datasets: Collection[str],
) -> pd.DataFrame:
    """Return the rows that a study asks for, in about 50 bytes each.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The columns of `persistcal.store.artifacts.PREDICTIONS` with `model` and `dataset`,
        in any order; numbers may be text.
    checkpoints : mapping
        By model of the study its evaluation checkpoints.
    datasets : collection of str
        Datasets of the study.

    Returns
    -------
    DataFrame
        `NAMES` as categories, `seed`, `confidence`, `correct`, and `row`: the number
        of the row in the file, from 1, the heading not counted. Rows of other
        models, checkpoints and datasets are left out, and the log says how many.

    Raises
    ------
    OwnPredictionsError
        When a row of the study has a name missing, a seed that is no whole number, a
        confidence outside [0, 1] or a `correct` that is not 0 or 1, or when there are
        none. The message shows the first such rows.
    """
    places: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    parts: list[dict[str, NDArray[Any]]] = []
    skipped: Counter[tuple[str, str]] = Counter()
    first = 1
    for batch in batches:
        for field in batch.schema:
            if pa.types.is_nested(field.type):
                raise OwnPredictionsError(
                    f"column {field.name!r} holds a {field.type} in each row; give one value"
                )
        names = {name: _codes(batch, name, places[name]) for name in NAMES}
        row = np.arange(first, first + len(batch))
        first += len(batch)
        wanted = _wanted(names, places, checkpoints, datasets, row, skipped)
        chosen = batch.filter(pa.array(wanted))
        part: dict[str, NDArray[Any]] = {name: codes[wanted] for name, codes in names.items()}
        part |= {"row": row[wanted], **_numbers(chosen, row[wanted])}
        parts.append(part)
    for (what, name), count in skipped.items():
        log.warning("Skipped %d rows of %s %r, which is not in the study", count, what, name)
    if not sum(len(part["row"]) for part in parts):
        raise OwnPredictionsError(
            f"no row belongs to the study's models ({', '.join(checkpoints)}), their "
            f"evaluation checkpoints and its datasets ({', '.join(datasets)})"
        )
    frame: dict[str, Any] = {}
    for name in (*NAMES, "row", *NUMBERS):
        column = np.concatenate([part.pop(name) for part in parts])  # frees the parts
        if name in places:
            frame[name] = pd.Categorical.from_codes(column, pd.Index(list(places[name])))
        else:
            frame[name] = column
    return pd.DataFrame(frame, copy=False)


def split_rows(rows: pd.DataFrame, wanted: Iterable[tuple[str, str]]) -> Iterator[pd.DataFrame]:
    """Yield the rows of each (model, dataset) that is `wanted`.

    Raises
    ------
    OwnPredictionsError
        When there are none of one, two rows are about the same checkpoint, question,
        training dataset, estimator and seed, or checkpoints spell a question differently.
    """
    key = ["checkpoint", "question_id", "train_dataset", "estimator", "seed"]
    for model, dataset in wanted:
        chosen = rows[(rows["model"] == model) & (rows["dataset"] == dataset)]
        if chosen.empty:
            raise OwnPredictionsError(
                f"no row is of model {model!r} and dataset {dataset!r}; add them, or take "
                "the model or the dataset out of the study"
            )
        if (twice := chosen.duplicated(key)).any():
            again = chosen[twice].iloc[0]
            same = (chosen[key] == again[key]).all(axis=1)
            numbers = " and ".join(str(row) for row in chosen.loc[same, "row"])
            raise OwnPredictionsError(
                f"{twice.sum()} rows repeat another: rows {numbers} are both of "
                f"{', '.join(f'{name} {again[name]}' for name in key)}; keep one"
            )
        if len(clash := other_spellings(chosen)):
            first = zip(clash["row"].head(4), clash["question_id"], strict=False)
            shown = [f"row {row}: {name!r}" for row, name in first]
            raise OwnPredictionsError(
                f"{clash.index.nunique()} questions have another question_id at another "
                f"checkpoint ({', '.join(shown)}); write each in one way"
            )
        by_checkpoint = chosen.groupby("checkpoint", sort=False, observed=True)["question_id"]
        if partly := partly_shared({str(c): ids for c, ids in by_checkpoint}):
            log.warning("%s, %s: %s", model, dataset, partly)
        yield chosen


def check_distinct(rows: pd.DataFrame, allowed: Mapping[str, bool]) -> None:
    """Refuse two checkpoints whose predictions of one model and dataset are all the same.

    Parameters
    ----------
    rows : DataFrame
        One of those that `split_rows` yields.
    allowed : mapping
        By checkpoint, whether it may be the same as another one.

    Raises
    ------
    OwnPredictionsError
        With both checkpoints and the first row of the second.
    """
    content = ["question_id", "train_dataset", "estimator", "seed", "confidence", "correct"]
    hashes = pd.util.hash_pandas_object(rows[content], index=False)  # summed, in any order
    sums = hashes.groupby(rows["checkpoint"], observed=True, sort=False).agg(["sum", "size"])
    first: dict[tuple[int, int], str] = {}
    for checkpoint, total, n in sums.itertuples():
        other = first.setdefault((total, n), checkpoint)
        if other != checkpoint and not (allowed[checkpoint] or allowed[other]):
            row = rows.loc[rows["checkpoint"] == checkpoint, "row"].iloc[0]
            model = rows["model"].iloc[0]
            raise OwnPredictionsError(
                f"all predictions of checkpoint {checkpoint} of {model} are those of {other} "
                f"(from row {row}); give each checkpoint its own, or if they are meant to be "
                f"equal set models.{model}.checkpoints.{checkpoint}.allow_identical_weights"
            )


def _codes(batch: pa.RecordBatch, name: str, places: dict[str, int]) -> NDArray[np.int32]:
    """Return the place of each name among those seen so far; -1 where there is none."""
    if name == "train_dataset" and name not in batch.schema.names:
        return _codes(batch, "dataset", places)
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    words = column.dictionary.cast(pa.string()).to_pylist()
    of_word = [places.setdefault(word, len(places)) if word else -1 for word in words]
    lookup = np.array([*of_word, -1], dtype=np.int32)
    return lookup[
        pc.fill_null(column.indices.cast(pa.int64()), len(words)).to_numpy(zero_copy_only=False)
    ]


def _wanted(
    names: Mapping[str, NDArray[np.int32]],
    places: Mapping[str, Mapping[str, int]],
    checkpoints: Mapping[str, Collection[str]],
    datasets: Collection[str],
    row: NDArray[np.int64],
    skipped: Counter[tuple[str, str]],
) -> NDArray[np.bool_]:
    """Return which rows belong to the study, and count the other ones in `skipped`."""
    for name in NAMES:
        if (lacking := names[name] < 0).any():
            raise _refuse(f"{name} is empty", row[lacking], [""] * lacking.sum(), "fill it in")

    def where(name: str, allowed: Collection[str]) -> NDArray[np.bool_]:
        return np.isin(names[name], [places[name].get(word, -1) for word in allowed])

    wanted = np.ones(len(row), dtype=bool)

    def keep(what: str, belongs: NDArray[np.bool_]) -> None:
        words = list(places[what])
        for code, count in zip(
            *np.unique(names[what][wanted & ~belongs], return_counts=True), strict=True
        ):
            skipped[what, words[code]] += int(count)
        wanted[~belongs] = False

    keep("model", where("model", checkpoints))
    keep("dataset", where("dataset", datasets))
    of_model = np.zeros(len(row), dtype=bool)
    for model, evaluated in checkpoints.items():
        of_model |= where("model", [model]) & where("checkpoint", evaluated)
    keep("checkpoint", of_model)
    return wanted


def _numbers(batch: pa.RecordBatch, row: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the checked `NUMBERS` of a batch whose rows have the numbers `row`."""
    seed, confidence = (_floats(batch.column(name)) for name in ("seed", "confidence"))
    label = batch.column("correct")
    if pa.types.is_floating(label.type) or pa.types.is_integer(label.type):
        correct = _floats(label)
    else:
        codes: dict[str, int] = {}
        of_row = _codes(batch, "correct", codes)
        values = [_LABELS.get(word.strip().lower(), np.nan) for word in codes]
        correct = np.array([*values, np.nan])[of_row]
    for name, wrong, remedy in (
        ("seed", ~((seed == np.floor(seed)) & (np.abs(seed) < 2**53)), "give a whole number"),
        ("confidence", ~((confidence >= 0) & (confidence <= 1)), "give a number in [0, 1]"),
        ("correct", ~((correct == 0) | (correct == 1)), "give 0 or 1"),
    ):
        if wrong.any():
            values = batch.column(name).filter(pa.array(wrong)).to_pylist()
            raise _refuse(f"{name} is not valid", row[wrong], values, remedy)
    return {
        "seed": seed.astype(np.int64),
        "confidence": confidence,
        "correct": correct.astype(bool),
    }


def _floats(column: pa.Array) -> NDArray[np.float64]:
    """Return a column as numbers, NaN for what is none."""
    try:
        numbers = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pd.to_numeric(column.to_pandas().astype(str), errors="coerce").to_numpy(float)
    return numbers.to_numpy(zero_copy_only=False)


def _refuse(
    what: str, row: NDArray[np.int64], values: Sequence[object], remedy: str
) -> OwnPredictionsError:
    shown = ", ".join(f"row {r}: {v!r}" for r, v in zip(row[:3], values, strict=False))
    return OwnPredictionsError(f"{what} ({shown}); {remedy}")

"""Collect a user's predictions batch by batch, and refuse rows that are wrong.

What is checked here needs one row, or the row's number in the file. Whether
estimators fit together is checked by `persistcal.evaluation.arrange.arrange`.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.question_ids import other_spellings, partly_shared
from persistcal.imports import user_tables
from persistcal.imports.user_tables import UserTableError, refuse

log = logging.getLogger(__name__)

NAMES = ("model", "dataset", "checkpoint", "question_id", "train_dataset", "estimator")
OPTIONAL = ("train_dataset",)  # the dataset itself where it is not given
KNOWN = (*NAMES, "seed", "confidence", "correct")
_LABELS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}


def check_columns(columns: Sequence[str]) -> None:
    """Refuse a file that lacks a column or has one that is not known."""
    needed = [name for name in KNOWN if name not in OPTIONAL]
    unknown = f"predictions may hold only {', '.join(KNOWN)}"
    user_tables.check_columns(columns, needed, OPTIONAL, unknown=unknown)


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
    UserTableError
        When a row of the study has a name missing, a seed that is no whole number, a
        confidence outside [0, 1] or a `correct` that is not 0 or 1, or when there are
        none. The message shows the first such rows.
    """
    parts: list[pd.DataFrame] = []
    skipped: Counter[tuple[str, str]] = Counter()
    first = 1
    for batch in batches:
        for field in batch.schema:
            if pa.types.is_nested(field.type):
                raise UserTableError(
                    f"column {field.name!r} holds a {field.type} in each row; give one value"
                )
        named = pd.DataFrame({name: _words(batch, name) for name in NAMES}, copy=False)
        named["row"] = np.arange(first, first + len(batch))
        first += len(batch)
        for name in NAMES:
            empty = named[name].isna() | (named[name] == "")
            _check(empty, named["row"], [""] * empty.sum(), f"{name} is empty", "fill it in")
        wanted = _wanted(named, checkpoints, datasets, skipped)
        part = named[wanted]
        unused = {name: part[name].cat.remove_unused_categories() for name in NAMES}
        numbers = _numbers(batch.filter(pa.array(wanted)), part["row"])
        parts.append(part.assign(**unused, **numbers))
    for (kind, name), count in skipped.items():
        log.warning("Skipped %d rows of %s %r, which is not in the study", count, kind, name)
    if not sum(map(len, parts)):
        raise UserTableError(
            f"no row belongs to the study's models ({', '.join(checkpoints)}), their "
            f"evaluation checkpoints and its datasets ({', '.join(datasets)})"
        )
    columns: dict[str, Any] = {}
    for name in parts[0].columns:
        values = [part.pop(name).array for part in parts]  # frees the parts
        if name in NAMES:
            columns[name] = pd.api.types.union_categoricals(values)
        else:
            columns[name] = np.concatenate(values)
    return pd.DataFrame(columns, copy=False)


def _words(batch: pa.RecordBatch, name: str) -> pd.Series:
    """Return a column as categories; the dataset in place of a training dataset not given."""
    column = batch.column(name if name in batch.schema.names else "dataset")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()).dictionary_encode().to_pandas()


def _wanted(
    rows: pd.DataFrame,
    checkpoints: Mapping[str, Collection[str]],
    datasets: Collection[str],
    skipped: Counter[tuple[str, str]],
) -> NDArray[np.bool_]:
    """Return which rows belong to the study, and count the other ones in `skipped`."""
    evaluated = np.zeros(len(rows), dtype=bool)
    for model, names in checkpoints.items():
        evaluated |= (rows["model"] == model) & rows["checkpoint"].isin(list(names))
    wanted = np.ones(len(rows), dtype=bool)
    for name, belongs in (
        ("model", rows["model"].isin(list(checkpoints))),
        ("dataset", rows["dataset"].isin(list(datasets))),
        ("checkpoint", evaluated),
    ):
        others = rows.loc[wanted & ~belongs, name].value_counts(sort=False)
        skipped.update({(name, word): n for word, n in others.items() if n})
        wanted &= np.asarray(belongs)
    return wanted


def _numbers(batch: pa.RecordBatch, row: pd.Series) -> dict[str, NDArray[Any]]:
    """Return the checked numbers and labels of a batch whose rows have the numbers `row`."""
    seed, confidence = (_floats(batch.column(name)) for name in ("seed", "confidence"))
    label = batch.column("correct")
    if pa.types.is_floating(label.type) or pa.types.is_integer(label.type):
        correct = _floats(label)
    else:
        words = _words(batch, "correct").cat
        values = [_LABELS.get(word.strip().lower(), np.nan) for word in words.categories]
        correct = np.array([*values, np.nan])[words.codes]  # the last of those without a word
    for name, wrong, remedy in (
        ("seed", ~((seed == np.floor(seed)) & (np.abs(seed) < 2**53)), "give a whole number"),
        ("confidence", ~((confidence >= 0) & (confidence <= 1)), "give a number in [0, 1]"),
        ("correct", ~((correct == 0) | (correct == 1)), "give 0 or 1"),
    ):
        values = batch.column(name).filter(pa.array(wrong))[:3].to_pylist()
        _check(wrong, row, values, f"{name} is not valid", remedy)
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


def _check(
    wrong: ArrayLike, row: pd.Series, values: Sequence[object], what: str, remedy: str
) -> None:
    """Refuse rows that are wrong, with the first of their `values`."""
    if np.any(wrong):
        places = [f"row {number}" for number in row[np.asarray(wrong)].head(3)]
        shown = pd.DataFrame({"place": places, "value": values[:3]}, dtype=object)
        raise refuse(what, shown, "value", remedy)


def check_predictions(
    rows: pd.DataFrame, datasets: Iterable[str], checkpoints: Mapping[str, Mapping[str, bool]]
) -> None:
    """Refuse rows of a model and dataset that cannot all be right together.

    Parameters
    ----------
    rows : DataFrame
        Of `collect_rows`.
    datasets : iterable of str
        Datasets of the study.
    checkpoints : mapping
        By model and checkpoint, whether it may be the same as another one.

    Raises
    ------
    UserTableError
        When there are no rows, two rows are about the same checkpoint, question, training
        dataset, estimator and seed, checkpoints spell a question differently, or all
        predictions of two checkpoints are the same.
    """
    for model, dataset in product(checkpoints, datasets):
        chosen = rows[(rows["model"] == model) & (rows["dataset"] == dataset)]
        if chosen.empty:
            raise UserTableError(
                f"no row is of model {model!r} and dataset {dataset!r}; add them, or take "
                "the model or the dataset out of the study"
            )
        _check_repeated(chosen)
        _check_spelling(chosen)
        _check_distinct(chosen, model, checkpoints[model])
        by_checkpoint = chosen.groupby("checkpoint", sort=False, observed=True)["question_id"]
        if partly := partly_shared({str(c): ids for c, ids in by_checkpoint}):
            log.warning("%s, %s: %s", model, dataset, partly)


def _check_repeated(rows: pd.DataFrame) -> None:
    key = ["checkpoint", "question_id", "train_dataset", "estimator", "seed"]
    if (twice := rows.duplicated(key)).any():
        again = rows[twice].iloc[0]
        same = (rows[key] == again[key]).all(axis=1)
        numbers = " and ".join(str(row) for row in rows.loc[same, "row"])
        raise UserTableError(
            f"{twice.sum()} rows repeat another: rows {numbers} are both of "
            f"{', '.join(f'{name} {again[name]}' for name in key)}; keep one"
        )


def _check_spelling(rows: pd.DataFrame) -> None:
    if len(clash := other_spellings(rows)):
        first = zip(clash["row"].head(4), clash["question_id"], strict=False)
        shown = [f"row {row}: {name!r}" for row, name in first]
        raise UserTableError(
            f"{clash.index.nunique()} questions have another question_id at another "
            f"checkpoint ({', '.join(shown)}); write each in one way"
        )


def _check_distinct(rows: pd.DataFrame, model: str, may_be_equal: Mapping[str, bool]) -> None:
    content = ["question_id", "train_dataset", "estimator", "seed", "confidence", "correct"]
    hashes = pd.util.hash_pandas_object(rows[content], index=False)  # summed, in any order
    sums = hashes.groupby(rows["checkpoint"], observed=True, sort=False).agg(["sum", "size"])
    first: dict[tuple[int, int], str] = {}
    for checkpoint, total, n in sums.itertuples():
        other = first.setdefault((total, n), checkpoint)
        if other != checkpoint and not (may_be_equal[checkpoint] or may_be_equal[other]):
            row = rows.loc[rows["checkpoint"] == checkpoint, "row"].iloc[0]
            raise UserTableError(
                f"all predictions of checkpoint {checkpoint} of {model} are those of {other} "
                f"(from row {row}); give each checkpoint its own, or if they are meant to be "
                f"equal set models.{model}.checkpoints.{checkpoint}.allow_identical_weights"
            )

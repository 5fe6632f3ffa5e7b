"""Predictions and settings as the rooms take them, or one sentence that says what is wrong."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

import pandas as pd

from persistcal.evaluation.contrast import Pairs, choose_pairs
from persistcal.evaluation.predictions import partly_shared, spelling_error
from persistcal.store.user_files import round_narrow

log = logging.getLogger(__name__)

NEEDED = ("checkpoint", "question_id", "estimator", "confidence", "correct")
PLACE = ["model", "dataset"]
NAMES = [*PLACE, "checkpoint", "question_id", "train_dataset", "estimator"]


def settings(
    checkpoints: Sequence[str], min_contrast: int, pairs: Pairs
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of checkpoints as text, and how contrast sets are made."""
    if isinstance(checkpoints, str):
        raise ValueError(f"checkpoints is the text {checkpoints!r}; give a list of names.")
    if not isinstance(checkpoints, Iterable):
        raise ValueError(f"checkpoints is {checkpoints!r}; give a list of names.")
    names = [str(name) for name in checkpoints]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"checkpoints is {names}; name each evaluation checkpoint once.")
    listed: set[str] = set()
    if not isinstance(pairs, str):
        given = list(pairs) if isinstance(pairs, Iterable) else []
        if not given or not all(isinstance(pair, Iterable) for pair in given):
            raise ValueError(
                f"pairs is {pairs!r}, but it may be 'all', 'adjacent', 'first', or a list of "
                "at least one pair of checkpoints."
            )
        pairs = [pair if isinstance(pair, str) else tuple(map(str, pair)) for pair in given]
        listed = {name for pair in pairs for name in pair}
    choose_pairs(pairs, names)  # refuses what is no pair
    if unknown := listed - set(names):
        raise ValueError(
            f"pairs names the checkpoint {min(unknown)!r}, which is none of {', '.join(names)}."
        )
    return names, {"min_contrast": whole_number("min_contrast", min_contrast), "pairs": pairs}


def whole_number(name: str, value: float, *, least: int = 1) -> int:
    """Return a setting as a whole number."""
    if not isinstance(value, Real) or not (value >= least and value == value // 1):
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)


def check_table(name: str, table: object, columns: Sequence[str], remedy: str) -> None:
    """Refuse what is no DataFrame with `columns`; the `remedy` is what to give instead."""
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"{name} is {type(table).__name__}, not a DataFrame; give {remedy}.")
    if lacking := [column for column in columns if column not in table]:
        raise ValueError(f"{name} lacks the column {lacking[0]!r}; give {remedy}.")


def blocks(predictions: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the rows of each model and dataset, with the columns that may be left out."""
    check_table("predictions", predictions, (), "one row per answer that an estimator judged")
    for name in NEEDED:
        if name not in predictions:
            raise ValueError(
                f"The predictions lack the column {name!r}: one row per answer that an "
                f"estimator judged has {', '.join(NEEDED)}."
            )
    for name in [*NAMES, "seed", "confidence", "correct"]:
        if list(predictions.columns).count(name) > 1:
            raise ValueError(f"The predictions have the column {name!r} twice; keep one.")
    if indexed := [name for name in predictions.index.names if name in [*NAMES, "seed"]]:
        raise ValueError(
            f"The predictions have {indexed[0]!r} in their index; call reset_index() first."
        )
    if predictions.empty:
        raise ValueError("The predictions hold no row: give one for each answer.")
    own_dataset = predictions.get("dataset", "dataset")
    optional = {
        "model": "model",
        "dataset": own_dataset,
        "seed": 0,
        "train_dataset": own_dataset,
    }
    missing = {name: value for name, value in optional.items() if name not in predictions}
    rows = predictions.assign(**missing)
    for name in [*NAMES, "seed"]:
        if (lacking := rows[name].isna()).any():
            raise ValueError(
                f"The predictions have no {name} in {lacking.sum()} row(s), first in row "
                f"{lacking.idxmax()}; fill it in or leave the rows out."
            )
    rows[NAMES] = rows[NAMES].astype(str)
    rows["confidence"] = round_narrow(rows["confidence"].to_numpy(), "confidence")
    for dataset, some in rows.groupby("dataset", sort=False):
        if error := spelling_error(some):
            raise ValueError(f"{dataset}: {error}.")
    for place, some in rows.groupby(PLACE, sort=False):
        by_checkpoint = some.groupby("checkpoint", sort=False)["question_id"]
        if partly := partly_shared({str(name): ids for name, ids in by_checkpoint}):
            log.warning("%s, %s: %s", *place, partly)
        yield dict(zip(PLACE, map(str, place), strict=True)), some.drop(columns=PLACE)

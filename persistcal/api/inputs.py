"""What a notebook hands over, as the rooms take it, or one sentence that says what is wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from persistcal.evaluation.contrast import Pairs

log = logging.getLogger(__name__)

NEEDED = ("checkpoint", "question_id", "estimator", "confidence", "correct")
PLACE = ["model", "dataset"]
NAMES = [*PLACE, "checkpoint", "question_id", "train_dataset", "estimator"]


def ask(
    checkpoints: Sequence[str], min_contrast: int, pairs: Pairs
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of checkpoints as text, and how contrast sets are made."""
    from persistcal.evaluation.contrast import choose_pairs

    if isinstance(checkpoints, str):
        raise ValueError(f"checkpoints is the text {checkpoints!r}; give a list of names.")
    names = [str(name) for name in checkpoints]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"checkpoints is {names}; name each evaluation checkpoint once.")
    if not isinstance(pairs, str):
        pairs = [pair if isinstance(pair, str) else tuple(map(str, pair)) for pair in pairs]
    choose_pairs(pairs, names)  # refuses what is no pair
    listed = {name for pair in pairs for name in pair} if not isinstance(pairs, str) else set()
    if unknown := listed - set(names):
        raise ValueError(
            f"pairs names the checkpoint {min(unknown)!r}, which is none of {', '.join(names)}."
        )
    contrast = whole_number("min_contrast", min_contrast)
    return names, {"min_contrast": contrast, "pairs": pairs}


def whole_number(name: str, value: float, *, least: int = 1) -> int:
    """Return a setting as a whole number."""
    if not isinstance(value, Real) or not (value >= least and value == value // 1):
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)


def blocks(predictions: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the rows of each model and dataset, with the columns that may be left out."""
    from persistcal.evaluation.question_ids import other_spellings, partly_shared

    for name in NEEDED:
        if name not in predictions:
            raise ValueError(
                f"The predictions lack the column {name!r}: one row per answer that an "
                f"estimator judged has {', '.join(NEEDED)}."
            )
    for name in [*NAMES, "seed", "confidence", "correct"]:
        if list(predictions.columns).count(name) > 1:
            raise ValueError(f"The predictions have the column {name!r} twice; keep one.")
    if predictions.empty:
        raise ValueError("The predictions hold no row: give one for each answer.")
    rows = predictions.copy()
    for name in [name for name in PLACE if name not in rows]:
        rows[name] = name
    if "seed" not in rows:
        rows["seed"] = 0
    if "train_dataset" not in rows:
        rows["train_dataset"] = rows["dataset"]
    for name in [*NAMES, "seed"]:
        if (missing := rows[name].isna()).any():
            raise ValueError(
                f"The predictions have no {name} in {missing.sum()} row(s), first in row "
                f"{missing.idxmax()}; fill it in or leave the rows out."
            )
        if name != "seed":
            rows[name] = rows[name].astype(str)
    for place, some in rows.groupby(PLACE, sort=False):
        where = dict(zip(PLACE, map(str, place), strict=True))
        if len(clash := other_spellings(some)):
            shown = ", ".join(map(repr, clash["question_id"].head(4)))
            raise ValueError(
                f"{clash.index.nunique()} questions have another question_id at another "
                f"checkpoint ({shown}); write each in one way."
            )
        by_checkpoint = some.groupby("checkpoint", sort=False)["question_id"]
        if partly := partly_shared({str(name): ids for name, ids in by_checkpoint}):
            log.warning("%s, %s: %s", *where.values(), partly)
        yield where, some.drop(columns=PLACE)

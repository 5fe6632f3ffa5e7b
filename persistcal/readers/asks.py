"""Second asks of the same questions, which are checked."""

from collections.abc import Collection
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ANSWER, differing_checkpoints
from persistcal.store.user_files import UserTableError

RUN = ["train_dataset", "estimator", "seed"]
FIRST, SECOND = 0, 1
BY_A_STUDY = 90  # least number of a half, or of an ask after other examples


def read_asks(values: pd.Series) -> NDArray[np.int64]:
    """Return the numbers of asks from a user's column."""
    numbers = pd.to_numeric(values.astype(object), errors="coerce")
    if numbers.isna().any() or (numbers % 1 != 0).any():
        row = int(((numbers.isna()) | (numbers % 1 != 0)).to_numpy().argmax())
        raise UserTableError(
            f"ask is {values.iloc[row]!r} in row {row + 1}; number the asks 1 and 2, or leave "
            "the column out"
        )
    return numbers.to_numpy(np.int64)


def number_asks(asks: pd.Series) -> NDArray[np.int64]:
    """Return asks of all files in their order, the first of them as 0.

    Tables that a study wrote keep their numbers of halves and of asks after other examples.

    >>> number_asks(pd.Series([1, 1, 2])).tolist(), number_asks(pd.Series([0, 2])).tolist()
    ([0, 0, 1], [0, 1])
    >>> number_asks(pd.Series([0, 101, 102])).tolist()
    [0, 101, 102]
    """
    given = sorted(asks.unique())
    if given[-1] >= BY_A_STUDY:
        return asks.to_numpy(np.int64)
    return np.searchsorted(given, asks).astype(np.int64)


def check_asks(rows: pd.DataFrame, *, greedy: bool = False) -> None:
    """Refuse asks of one model and dataset about other questions, and copies unless `greedy`.

    An ask of at most half of the questions, or of one checkpoint, is a control.
    """
    numbers = sorted(ask for ask in rows["ask"].unique() if ask < BY_A_STUDY)
    asks = [rows[rows["ask"] == ask] for ask in numbers]
    answers = [set(map(tuple, part[ANSWER].astype(str).to_numpy().tolist())) for part in asks]
    whole = [
        part
        for part, given in zip(asks, answers, strict=True)
        if not (given < answers[0] and 2 * len(given) <= len(answers[0]))
    ]
    for first, second in combinations(whole, 2):
        _check_two(first, second, greedy=greedy)


def _check_two(first: pd.DataFrame, second: pd.DataFrame, *, greedy: bool) -> None:
    for name, noun in (("checkpoint", "checkpoints"), ("question_id", "questions")):
        first_names, second_names = (set(part[name].astype(str)) for part in (first, second))
        if first_names != second_names:
            listed = ", ".join(sorted(first_names ^ second_names)[:3])
            raise UserTableError(
                f"the two asks have other {noun}: {len(first_names ^ second_names):,} are in "
                f"one of them only ({listed}); ask all checkpoints the same questions twice, "
                "or at most half of them as a control"
            )
    shared = set(first["estimator"]) & set(second["estimator"])
    runs = [
        set(map(tuple, rated[RUN].astype(str).drop_duplicates().to_numpy().tolist()))
        for rated in (part[part["estimator"].isin(shared)] for part in (first, second))
    ]
    for _, estimator, seed in sorted(runs[0] ^ runs[1])[:1]:
        raise UserTableError(
            f"estimator {estimator!r} has the seed {seed} in one of the two asks only; rate "
            "both asks with the same seeds"
        )
    differing = differing_checkpoints(first, second)
    checkpoints = list(dict.fromkeys(first["checkpoint"].astype(str)))
    copies = [name for name in checkpoints if name not in differing]
    if copies and not (greedy and copies == checkpoints):
        raise UserTableError(
            f"two asks of checkpoint {copies[0]!r} are copies: every confidence and label is "
            "equal; ask it again without a cache and with another seed, or "
            + (
                "leave the second ask out"
                if differing
                else "say that the answers are greedy (--greedy)"
            )
        )


def join_asks(
    first: pd.DataFrame, second: pd.DataFrame, files: Collection[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return predictions with a second ask, and notes; refuse another model or dataset.

    Estimators without a second ask keep their first one. Whole asks replace halves of samples.
    """
    first, second = (_without_halves(part) for part in (first, second))
    for name in ("model", "dataset"):
        first_names, second_names = (
            list(dict.fromkeys(part[name].astype(str))) for part in (first, second)
        )
        if set(first_names) != set(second_names):
            raise UserTableError(
                f"{', '.join(files)} are about {name} {', '.join(second_names)}, and the first "
                f"files about {', '.join(first_names)}; ask the same one again"
            )
    lacking = sorted(set(first["estimator"].astype(str)) - set(second["estimator"].astype(str)))
    is_in_both = second["estimator"].isin(first["estimator"].unique())
    if not is_in_both.any():
        raise UserTableError(
            f"{', '.join(files)} have no estimator of the first files "
            f"({', '.join(lacking)}); rate the second answers in the same way"
        )
    notes = [f"Asked once only: {', '.join(lacking)}."] if lacking else []
    return pd.concat([first, second[is_in_both].assign(ask=SECOND)], ignore_index=True), notes


def _without_halves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the only ask of some files; refuse files that have two."""
    if "ask" not in rows:
        return rows
    given = set(rows["ask"].unique())
    if any(FIRST < ask < BY_A_STUDY for ask in given):
        raise UserTableError(
            "a file has two asks in its column ask, and --again gives another one; leave "
            "--again out, or the rows of the file's second ask"
        )
    return rows[rows["ask"] == FIRST]

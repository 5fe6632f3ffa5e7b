"""Second asks of the same questions, which are checked."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.store.user_files import UserTableError

KEY = ["checkpoint", "question_id", "train_dataset", "estimator", "seed"]
FIRST, SECOND = 0, 2  # numbers of the asks; 1 and 2 are halves of the samples of 0
AS_NUMBERED = (
    [0, 1, 2],
    [0, 3],
)  # by a study, see `persistcal.questions.splits`


def number_asks(values: pd.Series) -> NDArray[np.int64]:
    """Return the numbers of asks from a user's column: two asks become 0 and 2.

    Halves of samples, and a second ask after other examples (3), keep their numbers.

    >>> number_asks(pd.Series([1, 1, 2])).tolist(), number_asks(pd.Series(["0", "1"])).tolist()
    ([0, 0, 2], [0, 2])
    """
    numbers = pd.to_numeric(values.astype(object), errors="coerce")
    given = sorted(numbers.dropna().unique())
    if numbers.isna().any() or (numbers % 1 != 0).any():
        row = int(((numbers.isna()) | (numbers % 1 != 0)).to_numpy().argmax())
        raise UserTableError(
            f"ask is {values.iloc[row]!r} in row {row + 1}; number the asks 1 and 2, or leave "
            "the column out"
        )
    if given in AS_NUMBERED:
        return numbers.to_numpy(np.int64)
    if len(given) > 2:
        raise UserTableError(
            f"ask has the values {', '.join(f'{ask:g}' for ask in given)}; give two asks, 1 "
            "and 2"
        )
    return np.where(numbers == given[0], FIRST, SECOND).astype(np.int64)


def check_asks(rows: pd.DataFrame) -> None:
    """Refuse two asks of one model and dataset that are about other questions, or copies."""
    asks = [rows[rows["ask"] == ask] for ask in sorted(rows["ask"].unique())]
    if len(asks) < 2:
        return
    first, second = asks[-2:]
    for name, noun in (("checkpoint", "checkpoints"), ("question_id", "questions")):
        first_names, second_names = (set(part[name].astype(str)) for part in (first, second))
        if first_names != second_names:
            listed = ", ".join(sorted(first_names ^ second_names)[:3])
            raise UserTableError(
                f"the two asks have other {noun}: {len(first_names ^ second_names):,} are in "
                f"one of them only ({listed}); ask all checkpoints the same questions twice"
            )
    shared = set(first["estimator"]) & set(second["estimator"])
    runs = [
        set(map(tuple, rated[KEY[2:]].astype(str).drop_duplicates().to_numpy().tolist()))
        for rated in (part[part["estimator"].isin(shared)] for part in (first, second))
    ]
    for _, estimator, seed in sorted(runs[0] ^ runs[1])[:1]:
        raise UserTableError(
            f"estimator {estimator!r} has the seed {seed} in one of the two asks only; rate "
            "both asks with the same seeds"
        )
    contents = [
        part[[*KEY, "confidence", "correct"]].astype(dict.fromkeys(KEY, str)).sort_values(KEY)
        for part in (first, second)
    ]
    if contents[0].reset_index(drop=True).equals(contents[1].reset_index(drop=True)):
        raise UserTableError(
            "the second ask is a copy of the first one: every confidence and label is equal; "
            "ask again, or say that the answers are greedy (--greedy)"
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
    if given - {FIRST} and 1 not in given:
        raise UserTableError(
            "a file has two asks in its column ask, and --again gives another one; leave "
            "--again out, or the rows of the file's second ask"
        )
    return rows[rows["ask"] == FIRST]

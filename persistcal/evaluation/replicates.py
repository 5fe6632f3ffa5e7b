"""Bootstrap replicates as a table, so that each estimator's can be made on its own.

Replicates of two estimators are paired when both were drawn from the same answers with
the same seed; a digest of these says so.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.significance import Replicates

KEY = ["conditioning", "scope", "metric"]


class UnpairedError(ValueError):
    """Estimators were resampled from other answers, or with another seed."""


def digest_of_draws(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    n_replicates: int,
    seed: int,
    pairs: Pairs,
) -> str:
    """Return a digest of all that decides which questions are drawn, and nothing else.

    Parameters
    ----------
    predictions : DataFrame
        Columns checkpoint, question_id and correct, of any estimator.
    checkpoints, min_contrast, n_replicates, seed, pairs
        As for `replicate_metrics`.
    """
    answers = predictions[["checkpoint", "question_id", "correct"]].drop_duplicates()
    rows = answers.sort_values(["checkpoint", "question_id"]).to_csv(index=False)
    settings = [*checkpoints, min_contrast, n_replicates, seed, pairs]
    return hashlib.sha256(f"{settings}\n{rows}".encode()).hexdigest()[:16]


def to_table(replicates: Replicates, drawn: str) -> pd.DataFrame:
    """Return the rows of the table REPLICATES: one per estimator and metric."""
    return pd.DataFrame(
        [
            (*estimator, *key, replicates.observed[key][i], columns[i], drawn)
            for key, columns in replicates.replicated.items()
            for i, estimator in enumerate(replicates.estimators)
        ],
        columns=["train_dataset", "estimator", *KEY, "value", "replicates", "drawn"],
    )


def from_table(table: pd.DataFrame) -> Replicates:
    """Return the replicates of all estimators in rows of one or more tables REPLICATES.

    Raises
    ------
    UnpairedError
        When they were not drawn alike.
    """
    by_draw = table.groupby("drawn")["estimator"].unique()
    if len(by_draw) > 1:
        sides = " and ".join(", ".join(map(repr, names)) for names in by_draw)
        raise UnpairedError(
            f"Replicates of {sides} were drawn from other answers, so they cannot be compared "
            "in pairs; run resample_metrics again for all of them."
        )
    estimators = list(
        table[["train_dataset", "estimator"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    observed: dict[Any, NDArray[np.float64]] = {}
    replicated: dict[Any, NDArray[np.float64]] = {}
    for key, rows in table.groupby(KEY, sort=False):
        of = rows.set_index(["train_dataset", "estimator"]).loc[estimators]
        observed[key] = of["value"].to_numpy()
        replicated[key] = np.stack(of["replicates"].to_list())
    return Replicates(estimators, observed, replicated)

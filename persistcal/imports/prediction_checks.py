"""Check what the rows of a user's predictions must agree on.

Whether estimators fit together is checked by `persistcal.evaluation.arrange.arrange`.
"""

import logging
from collections.abc import Iterable, Mapping
from itertools import product

import pandas as pd

from persistcal.evaluation.question_ids import other_spellings, partly_shared
from persistcal.imports.user_tables import UserTableError

log = logging.getLogger(__name__)


def check_predictions(
    rows: pd.DataFrame, datasets: Iterable[str], checkpoints: Mapping[str, Mapping[str, bool]]
) -> None:
    """Refuse rows of a model and dataset that cannot all be right together.

    There are some, each is there once, a question has one spelling, and the predictions of
    two checkpoints differ unless `checkpoints` says of one that it may equal another.
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

"""Check imported predictions, row by row and across rows."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import product

import numpy as np
import pandas as pd

from persistcal.evaluation.predictions import NO_CONFIDENCE, partly_shared, spelling_error
from persistcal.readers.columns import PREDICTIONS
from persistcal.readers.rules import (
    FIRST,
    WIDE,
    check_asks,
    check_copies,
    check_one_row,
    check_table,
    content_of,
    number_asks,
    read_column,
)
from persistcal.readers.scales import PROBABILITIES, Scale, settle
from persistcal.store.artifacts import ANSWERS
from persistcal.store.user_files import (
    Keep,
    UserTableError,
    check_columns,
    check_groups,
    first_rows,
    read_file,
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
CAN_BE_MISSING = ("confidence", "correct")  # columns with missing values if a caller allows it


def collect_rows(
    rows: pd.DataFrame, *, scale: Scale | None = None, lenient: bool = False
) -> pd.DataFrame:
    """Return rows of predictions after checking each row.

    `row` is the row number in the file, from 1, and the index of `rows` numbers them from 0. A
    row takes about 50 bytes. If `lenient`, confidences and labels can be missing (NaN). On a
    `scale`, the refusal of other confidences names the scale that reads them.
    """
    if rows.empty:
        raise UserTableError(f"has no row; give one for each {PREDICTIONS.unit}")
    tidy = pd.DataFrame({"row": np.array(rows.index) + 1})
    for column in PREDICTIONS.columns:
        can_lack = lenient and column.name in CAN_BE_MISSING
        tidy[column.name] = read_column(rows, tidy, column, scale, can_lack=can_lack)
    if "train_dataset" not in rows:
        tidy["train_dataset"] = tidy["dataset"]
    tidy["ask"] = tidy["ask"].astype(np.int64) if "ask" in rows else np.int8(FIRST)
    if not lenient:
        tidy["correct"] = tidy["correct"].astype(bool)
    if "group" in rows:
        check_groups(tidy["group"], tidy["question_id"])
    stored, rounded = rows["confidence"], tidy["confidence"]
    if pd.api.types.is_float_dtype(stored) and getattr(stored.dtype, "itemsize", WIDE) < WIDE:
        changed = (rounded != stored.to_numpy(float, na_value=np.nan)) & rounded.notna()
        tidy.attrs[NARROW] = sorted(set(tidy.loc[changed, "estimator"]))
    return tidy


def read_study_rows(
    file: str, checkpoints: Mapping[str, Collection[str]], datasets: Collection[str]
) -> pd.DataFrame:
    """Return the rows of a file that a study reads; log how many rows are skipped.

    Skipped rows are not checked, and need no memory.
    """
    skipped: dict[str, Counter[str]] = {"model": Counter(), "dataset": Counter()}
    skipped["checkpoint"] = Counter()

    def is_kept(*key: object) -> bool:
        model, dataset, checkpoint = map(str, key)
        if None in key or "" in key:
            return True  # and refused
        if model not in checkpoints:
            skipped["model"][model] += 1
        elif dataset not in datasets:
            skipped["dataset"][dataset] += 1
        elif checkpoint not in checkpoints[model]:
            skipped["checkpoint"][checkpoint] += 1
        else:
            return True
        return False

    def choose(names: Sequence[str]) -> dict[str, str]:
        check_table(names, PREDICTIONS)
        return {name: name for name in names}

    keep = Keep([*skipped], is_kept)
    rows = read_file(file, known_names=PREDICTIONS.names, choose=choose, keep=keep)
    for column, counts in skipped.items():
        for word, n in counts.items():
            log.warning("Skipped %d rows of %s %r, which is not in the study", n, column, word)
    if rows.empty:
        raise UserTableError(
            f"no row belongs to the study's models ({', '.join(checkpoints)}), their "
            f"evaluation checkpoints and its datasets ({', '.join(datasets)})"
        )
    return collect_rows(rows)


def settle_rows(
    rows: pd.DataFrame, scale: Scale = PROBABILITIES, narrow: Collection[str] = ()
) -> pd.DataFrame:
    """Return the rows of all files with confidences of `settle` and asks from 0."""
    numbers, owners = rows["confidence"].to_numpy(), rows[["model", "checkpoint", "estimator"]]
    rows["confidence"] = settle(numbers, owners, scale, narrow)
    rows["ask"] = number_asks(rows["ask"])
    return rows


def frame_rows(
    predictions: pd.DataFrame, checkpoints: Collection[str], *, labels_only: bool = False
) -> pd.DataFrame:
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
    rows = rows.reset_index(drop=True)
    if labels_only and not {"confidence", "estimator"} & set(rows):
        rows = rows.assign(**LABELS_ONLY)
    check_columns(list(rows), FRAME, PREDICTIONS.names, unknown="")
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
    return pd.DataFrame({name: _plain_column(rows[name]) for name in rows})


def _plain_column(column: pd.Series) -> pd.Series:
    """Return a column of any type as texts or, if it has them, numbers and truth values."""
    dtype = column.dtype
    is_number = pd.api.types.is_numeric_dtype(dtype) and not np.iscomplexobj(column)
    if column.name in NUMERIC and (is_number or pd.api.types.is_bool_dtype(dtype)):
        return column.astype(dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype)
    return column.astype(str).where(column.notna(), None)


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
            (model, name, content_of(part[CONTENT]), f" (from {first_rows(part.head(1))})")
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
            rare_rows = rows[rows[column] == name]
            usual = {str(n): n for n in counts.index if counts[n] > counts[name]}
            n, likeness = (len(usual) or 1, 0.0) if has_any_name else (1, 0.8)
            for near in get_close_matches(str(name), list(usual), n, likeness):
                usual_rows = rows[rows[column] == usual[near]]
                runs = usual_rows[run].drop_duplicates()
                is_other = has_any_name and len(rare_rows.merge(runs, on=run)) < len(rare_rows)
                if not is_other and rare_rows.merge(usual_rows, on=key).empty:
                    return (
                        f"a new {column} {str(name)!r} ({len(rare_rows):,} rows, first "
                        f"{first_rows(rare_rows.head(1))}); is it a slip of {near!r} "
                        f"({len(usual_rows):,} rows)? Correct it, or name it differently"
                    )
    return ""


def imported_answers(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the table ANSWERS; all estimators have the same, so the first is read."""
    usual = predictions[predictions["ask"] == FIRST]
    answers = usual.assign(split="test", answer=None, probability=float("nan"))
    answers = answers.drop_duplicates([*ANSWERS.file_columns, "question_id"])
    return answers[[*ANSWERS.file_columns, *ANSWERS.schema.names]]

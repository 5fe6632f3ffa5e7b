"""Settings and tables of an evaluation, from the predictions of a notebook."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from persistcal.evaluation.contrast import choose_pairs
from persistcal.evaluation.predictions import (
    ABSENT,
    arrange,
    drop_noise,
    partly_shared,
    spelling_error,
)
from persistcal.evaluation.settings import MIN_REPLICATES, EvaluationSettings, Pairs
from persistcal.evaluation.thresholds import check_target
from persistcal.questions.groups import check_groups
from persistcal.questions.labels import one_form
from persistcal.readers.asks import SECOND, check_asks, join_asks, number_asks
from persistcal.store import artifacts
from persistcal.store.user_files import round_narrow

log = logging.getLogger(__name__)

NEEDED = ("checkpoint", "question_id", "confidence", "correct")
SUBJECT = ["model", "dataset"]
NAMES = [*SUBJECT, "checkpoint", "question_id", "train_dataset", "estimator"]
# Columns that predictions can lack, and their value then; datasets are trained on themselves
DEFAULTS = {"model": "model", "dataset": "dataset", "estimator": "confidence", "seed": "0"}
IMPORTED = ""  # in place of an estimator: all estimators of given predictions together

Key = tuple[str, str, str]  # model, dataset, estimator


def make_settings(*, pairs: Pairs = "all", **given: Any) -> EvaluationSettings:  # noqa: ANN401
    """Return the settings of a notebook or of the command, and refuse numbers that cannot be.

    Without a table of the paper, nothing reads its marks.
    """
    usual = EvaluationSettings
    check_target(given.get("precision", usual.precision), given.get("delta", usual.delta))
    least = {"min_contrast": 1, "min_direction": 1, "n_replicates": MIN_REPLICATES, "seed": 0}
    for name in least.keys() & given.keys():
        given[name] = whole_number(name, given[name], least=least[name])
    if not isinstance(pairs, str):
        listed = list(pairs) if isinstance(pairs, Iterable) else []
        if not listed or not all(isinstance(pair, Iterable) for pair in listed):
            raise ValueError(
                f"pairs is {pairs!r}, but it must be 'all', 'adjacent', 'first', or a "
                "list of at least one pair of checkpoints."
            )
        pairs = [pair if isinstance(pair, str) else tuple(map(str, pair)) for pair in listed]
    return EvaluationSettings(pairs=pairs, paper_marks=False, **given)


def check_pairs(pairs: Pairs, names: Sequence[str]) -> None:
    """Refuse pairs of other checkpoints than `names`."""
    choose_pairs(pairs, names)
    listed = () if isinstance(pairs, str) else pairs
    for name in (name for pair in listed for name in pair):
        if name not in names:
            raise ValueError(
                f"pairs names the checkpoint {name!r}, which is none of {', '.join(names)}."
            )


@dataclass
class PredictionTables:
    """The tables of an evaluation, with the workflow's columns.

    `checkpoints` maps models to checkpoints, earliest first. `predictions` maps model, dataset
    and estimator to rows of the table PREDICTIONS. The tables of texts are empty for given
    predictions. `notes` are sentences about assumptions.
    """

    checkpoints: dict[str, list[str]]
    predictions: dict[Key, pd.DataFrame]
    answers: pd.DataFrame
    questions: pd.DataFrame = field(default_factory=lambda: stack([], artifacts.QUESTIONS))
    clusters: pd.DataFrame = field(default_factory=lambda: stack([], artifacts.CLUSTERS))
    labels: pd.DataFrame = field(default_factory=lambda: stack([], artifacts.LABELS))
    notes: list[str] = field(default_factory=list)
    is_greedy: bool = field(default=False, init=False)  # known or declared to be deterministic
    samples_differ: bool = field(default=False, init=False)  # answers to one question do

    def ask_again(self, second: "PredictionTables", files: Sequence[str]) -> None:
        """Add the predictions of a second ask, from other `files` about the same questions."""
        for model, names in self.checkpoints.items():
            if (second_names := second.checkpoints.get(model, names)) != names:
                raise ValueError(
                    f"{', '.join(files)} have the checkpoints {', '.join(second_names)}, and "
                    f"the first files {', '.join(names)}; give the second asks in the same "
                    "order and with the same names."
                )
        joined, notes = join_asks(self.all_predictions, second.all_predictions, files)
        for subject in self.subjects():
            check_asks(select_rows(joined, subject))
        for key in self.predictions:
            model, dataset, name = key
            chosen = select_rows(joined, {"model": model, "dataset": dataset})
            if name != IMPORTED:
                chosen = chosen[chosen["estimator"] == name]
            usual = chosen["ask"] != SECOND
            self.predictions[key] = pd.concat(
                [chosen[usual], chosen[~usual]], ignore_index=True
            )
        self.notes += [*notes, f"Asked again in {', '.join(files)}."]

    def declare_greedy(self) -> None:
        """Take all answers as deterministic; refuse two asks, which show whether they are."""
        for rows in self.predictions.values():
            if self.samples_differ or ("ask" in rows and rows["ask"].nunique() > 1):
                raise ValueError(
                    "the answers were asked twice or sampled, so --greedy has no meaning; "
                    "leave it out."
                )
        self.is_greedy = True

    @property
    def all_predictions(self) -> pd.DataFrame:
        """All rows of PREDICTIONS in one table."""
        return pd.concat(self.predictions.values(), ignore_index=True)

    def subjects(self) -> list[dict[str, str]]:
        """Return each model and dataset."""
        subjects = dict.fromkeys((model, dataset) for model, dataset, _ in self.predictions)
        return [{"model": model, "dataset": dataset} for model, dataset in subjects]

    def check_pairs(self) -> None:
        """Refuse predictions without two checkpoints of a model that share a question."""
        if all(len(names) < 2 for names in self.checkpoints.values()):
            listed = "; ".join(
                f"{model}: {', '.join(names)}" for model, names in self.checkpoints.items()
            )
            versions = (
                " If the models are versions, name them in the column checkpoint (in the "
                "command, --columns checkpoint=model)."
            ) * (len(self.checkpoints) > 1)
            raise ValueError(
                f"No model has two checkpoints to compare ({listed}); give a later one, or "
                f"compute the metrics of one (evaluate in a notebook, else "
                f"persistcal metrics)."
                f"{versions}"
            )
        for rows in self.predictions.values():
            sets = [set(i.unique()) for _, i in rows.groupby("checkpoint")["question_id"]]
            if any(first & second for first, second in combinations(sets, 2)):
                return
        raise ValueError(
            "No two checkpoints of a model answered a question in common; write question_id in "
            "one way at all checkpoints."
        )

    def assumptions(self, settings: EvaluationSettings) -> list[str]:
        """Return sentences on the order of the checkpoints, the files and the contrast sets."""
        orders = [f"{model}: {' → '.join(names)}" for model, names in self.checkpoints.items()]
        return [
            f"Checkpoints in order, {'; '.join(orders)}.",
            *self.notes,
            f"Contrast sets of fewer than {settings.min_contrast} questions are left out.",
        ]


def stack(
    parts: Sequence[tuple[pd.DataFrame, dict[str, str]]], table: artifacts.Table
) -> pd.DataFrame:
    """Return one checked table from its parts, each with the columns that it lacks."""
    columns = [*table.file_columns, *table.schema.names]
    frames = []
    for frame, subject in parts:
        given = {name: subject[name] for name in columns if name in subject}
        whole = table.fill(frame.assign(**given))
        rows = artifacts.check(whole[table.schema.names], table, table.name).to_pandas()
        frames.append(rows.assign(**{n: subject[n] for n in table.file_columns})[columns])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def select_rows(table: pd.DataFrame, subject: dict[str, str]) -> pd.DataFrame:
    """Return the rows of a table with the values of `subject`."""
    return table[(table[list(subject)] == list(subject.values())).all(axis=1)]


def checkpoints_by_model(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return the checkpoints of each model in the order of the rows."""
    names_of: dict[str, list[str]] = {}
    for model, checkpoint in distinct_rows(rows, ["model", "checkpoint"]):
        names_of.setdefault(model, []).append(checkpoint)
    return names_of


def distinct_rows(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the distinct values of some columns as texts, in the order of the rows."""
    pairs = rows[list(columns)].astype(str).drop_duplicates()
    return list(pairs.itertuples(index=False, name=None))


def whole_number(name: str, value: float, *, least: int = 1) -> int:
    """Return a setting as a whole number."""
    if not isinstance(value, Real) or not (value >= least and value == value // 1):
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)


def read_predictions(
    predictions: pd.DataFrame, checkpoints: Sequence[str] | None, settings: EvaluationSettings
) -> PredictionTables:
    """Return the inputs of an evaluation, of all checkpoints unless some are chosen."""
    names = None if checkpoints is None else checkpoint_names(checkpoints)
    if names:
        check_pairs(settings.pairs, names)
    by_subject = {
        (p["model"], p["dataset"]): rows for p, rows in _by_subject(predictions, names)
    }
    by_model: dict[str, list[str]] = {}
    for (model, _), rows in by_subject.items():
        names_of = by_model.setdefault(model, list(names or []))
        names_of += [name for name in rows["checkpoint"].unique() if name not in names_of]
    check_spellings(by_model)
    for names_of in by_model.values():
        check_pairs(settings.pairs, names_of)
    answers = [_answers(rows, by_model[model]) for (model, _), rows in by_subject.items()]
    by_key = {(model, dataset, IMPORTED): rows for (model, dataset), rows in by_subject.items()}
    return PredictionTables(by_model, by_key, pd.concat(answers, ignore_index=True))


def check_spellings(by_model: Mapping[str, Sequence[str]]) -> None:
    """Refuse names of checkpoints that look the same."""
    for model, names in by_model.items():
        first: dict[str, str] = {}
        for name in names:
            if (same := first.setdefault(" ".join(one_form(name).split()), name)) != name:
                raise ValueError(
                    f"{model}: the checkpoints {same!r} and {name!r} differ only in spaces "
                    "or invisible characters; write a checkpoint in one way."
                )


def _answers(rows: pd.DataFrame, checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the table ANSWERS of the predictions of one model and dataset, without texts."""
    arranged = arrange(rows, checkpoints)
    checkpoint, question = np.nonzero(arranged.correct != ABSENT)
    return pd.DataFrame(
        {
            "model": rows["model"].iloc[0],
            "dataset": rows["dataset"].iloc[0],
            "checkpoint": np.array(checkpoints, object)[checkpoint],
            "question_id": arranged.questions[question],
            "split": "test",
            "answer": None,
            "probability": np.nan,
            "correct": arranged.correct[checkpoint, question] == 1,
        }
    )


def checkpoint_names(checkpoints: Sequence[str]) -> list[str]:
    """Return the names of checkpoints as text."""
    if isinstance(checkpoints, str):
        raise ValueError(f"checkpoints is the text {checkpoints!r}; give a list of names.")
    if not isinstance(checkpoints, Iterable):
        raise ValueError(f"checkpoints is {checkpoints!r}; give a list of names.")
    names = [str(name) for name in checkpoints]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"checkpoints is {names}; name each evaluation checkpoint once.")
    return names


def _by_subject(
    predictions: pd.DataFrame, checkpoints: Sequence[str] | None
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the rows of each model and dataset, with the columns that they can lack."""
    _check_columns(predictions)
    own_dataset = predictions.get("dataset", DEFAULTS["dataset"])
    defaults = {**DEFAULTS, "train_dataset": own_dataset, "seed": 0}
    rows = predictions.assign(**{n: v for n, v in defaults.items() if n not in predictions})
    for name in [*NAMES, "seed"]:
        if (lacking := rows[name].isna()).any():
            raise ValueError(
                f"The predictions have no {name} in {lacking.sum()} row(s), first in row "
                f"{lacking.idxmax()}; fill it in or leave the rows out."
            )
    rows[NAMES] = rows[NAMES].astype(str)
    if checkpoints is not None:
        is_chosen = rows["checkpoint"].isin(checkpoints)
        for left_out, count in rows.loc[~is_chosen, "checkpoint"].value_counts().items():
            log.warning(
                "Skipped %d rows of checkpoint %r, which is not chosen", count, left_out
            )
        if not is_chosen.any():
            raise ValueError(f"No row has one of the checkpoints {', '.join(checkpoints)}.")
        rows = rows[is_chosen]
    stated = rows["confidence"].to_numpy()
    if stated.dtype == object:  # numbers of float32, for example, in a column of any type
        numbers = pd.to_numeric(rows["confidence"], errors="coerce").to_numpy(float)
        stated = stated if np.isnan(numbers).any() else numbers
    stated = round_narrow(stated, "confidence", rows["estimator"])
    rows["confidence"] = drop_noise(stated) if stated.dtype == np.float64 else stated
    if "ask" in rows:
        rows["ask"] = number_asks(rows["ask"])
    if "group" in rows:
        rows["group"] = rows["group"].fillna("").astype(str)
        check_groups(rows["group"], rows["question_id"])
    for dataset, group in rows.groupby("dataset", sort=False):
        if error := spelling_error(group):
            raise ValueError(f"{dataset}: {error}.")
    for key, group in rows.groupby(SUBJECT, sort=False):
        by_checkpoint = group.groupby("checkpoint", sort=False)["question_id"]
        if partly := partly_shared({str(name): ids for name, ids in by_checkpoint}):
            log.warning("%s, %s: %s", *key, partly)
        if "ask" in group:
            check_asks(group)
        yield dict(zip(SUBJECT, map(str, key), strict=True)), group


def _check_columns(predictions: pd.DataFrame) -> None:
    """Refuse predictions without the right columns."""
    one_row = "one row per answer that an estimator judged"
    if not isinstance(predictions, pd.DataFrame):
        kind = type(predictions).__name__
        raise ValueError(f"predictions is {kind}, not a DataFrame; give {one_row}.")
    if predictions.columns.nlevels > 1:
        raise ValueError(
            "The predictions have columns with several levels; give columns with one name."
        )
    for name in NEEDED:
        if name not in predictions:
            raise ValueError(
                f"The predictions lack the column {name!r}: {one_row} has {', '.join(NEEDED)}."
            )
    for name in [*NAMES, "seed", "confidence", "correct", "ask", "group"]:
        if list(predictions.columns).count(name) > 1:
            raise ValueError(f"The predictions have the column {name!r} twice; keep one.")
    if indexed := [name for name in predictions.index.names if name in [*NAMES, "seed"]]:
        raise ValueError(
            f"The predictions have {indexed[0]!r} in their index; call reset_index() first."
        )
    for name in ("confidence", "correct", "seed"):
        if name in predictions and np.iscomplexobj(predictions[name]):
            raise ValueError(f"The {name} is complex; give real numbers.")
    if predictions.empty:
        raise ValueError("The predictions hold no row: give one for each answer.")

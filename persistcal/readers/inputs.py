"""Settings and tables of an evaluation, from the predictions of a notebook."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import pandas as pd

from persistcal.evaluation.contrast import choose_pairs
from persistcal.evaluation.predictions import NO_CONFIDENCE, asks_that_repeat
from persistcal.evaluation.settings import LEAST, MARGINS, EvaluationSettings, Pairs
from persistcal.evaluation.thresholds import check_target
from persistcal.questions.labels import one_form
from persistcal.readers.rules import SECOND, check_asks, join_asks
from persistcal.store import artifacts
from persistcal.store.tables import select_rows

log = logging.getLogger(__name__)

FEW_GROUPS = 30
SUBJECT = ["model", "dataset"]
IMPORTED = ""  # in place of an estimator: all estimators of given predictions together

_LEFT_OUT = re.compile(r"Left out[^:]*: (?P<n>[\d,]+) (?P<what>.*)\.")

Key = tuple[str, str, str]  # model, dataset, estimator


def describe_left_out(n: int, what: str, where: str = "") -> str:
    """Return the note that some rows or questions are left out, which `left_out` counts."""
    return f"Left out{where}: {n:,} {what}."


def make_settings(
    *,
    pairs: Pairs = "all",
    margin: Mapping[str, float] | None = None,
    **given: Any,  # noqa: ANN401
) -> EvaluationSettings:
    """Return the settings of a notebook or of the command, and refuse numbers that cannot be.

    Without a table of the paper, nothing reads its marks.
    """
    usual = EvaluationSettings
    check_target(given.get("precision", usual.precision), given.get("delta", usual.delta))
    for name in LEAST.keys() & given.keys():
        value: float = given[name]
        if not isinstance(value, Real) or not (value >= LEAST[name] and value == value // 1):
            raise ValueError(
                f"{name} is {value!r}; give a whole number of at least {LEAST[name]}."
            )
        given[name] = int(value)
    if not isinstance(pairs, str):
        listed = list(pairs) if isinstance(pairs, Iterable) else []
        if not listed or not all(isinstance(pair, Iterable) for pair in listed):
            raise ValueError(
                f"pairs is {pairs!r}, but it must be 'all', 'adjacent', 'first', or a "
                "list of at least one pair of checkpoints."
            )
        pairs = [pair if isinstance(pair, str) else tuple(map(str, pair)) for pair in listed]
    for name, share in (margin or {}).items():
        if name not in MARGINS or not isinstance(share, Real) or not 0 <= share < 1:
            raise ValueError(
                f"margin has {name}={share!r}; give {' or '.join(MARGINS)} and a share below 1."
            )
    margins = MARGINS | dict(margin or {})
    return EvaluationSettings(pairs=pairs, margin=margins, paper_marks=False, **given)


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
    digests: dict[str, str] = field(default_factory=dict, init=False)  # SHA-256 of files
    slices: pd.DataFrame | None = field(default=None, init=False)  # a row per question
    is_greedy: bool = field(default=False, init=False)  # known or declared to be deterministic
    samples_differ: bool = field(default=False, init=False)  # answers to one question do

    def ask_again(
        self, second: "PredictionTables", files: Sequence[str], *, greedy: bool = False
    ) -> None:
        """Add the predictions of a second ask, from other `files` about the same questions."""
        for model, names in self.checkpoints.items():
            second_names = second.checkpoints.get(model, names)
            if not set(second_names) < set(names) and second_names != names:
                raise ValueError(
                    f"{', '.join(files)} have the checkpoints {', '.join(second_names)}, and "
                    f"the first files {', '.join(names)}; give the second asks in the same "
                    "order and with the same names."
                )
        joined, notes = join_asks(self.all_predictions, second.all_predictions, files)
        for subject in self.subjects():
            check_asks(select_rows(joined, subject), greedy=greedy)
        for key in self.predictions:
            model, dataset, name = key
            rows = select_rows(joined, {"model": model, "dataset": dataset})
            if name != IMPORTED:
                rows = rows[rows["estimator"] == name]
            usual = rows["ask"] != SECOND
            self.predictions[key] = pd.concat([rows[usual], rows[~usual]], ignore_index=True)
        self.notes += [*notes, f"Asked again in {', '.join(files)}."]

    def check_rated(self) -> None:
        """Refuse answers without a confidence."""
        if (self.all_predictions["estimator"] == NO_CONFIDENCE).any():
            raise ValueError(
                "the answers have labels and no confidence; add the column confidence, or "
                "compare accuracies (compare)."
            )

    def declare_greedy(self) -> None:
        """Take all answers as deterministic; refuse crossed asks, which show that they differ.

        An ask of a part, or that equals the first one, is a control.
        """
        for rows in self.predictions.values():
            n_asks = rows["ask"].nunique() if "ask" in rows else 1
            if self.samples_differ or n_asks - len(asks_that_repeat(rows)) > 1:
                raise ValueError(
                    "the answers were asked twice or sampled, so --greedy has no meaning; "
                    "leave it out."
                )
        self.is_greedy = True

    @property
    def all_predictions(self) -> pd.DataFrame:
        """All rows of PREDICTIONS in one table."""
        return pd.concat(self.predictions.values(), ignore_index=True)

    @property
    def left_out(self) -> dict[str, int]:
        """Numbers of rows or questions that the notes report as left out, by kind."""
        matches = (_LEFT_OUT.fullmatch(note) for note in self.notes)
        return {match["what"]: int(match["n"].replace(",", "")) for match in matches if match}

    def subjects(self) -> list[dict[str, str]]:
        """Return each model and dataset."""
        subjects = dict.fromkeys((model, dataset) for model, dataset, _ in self.predictions)
        return [{"model": model, "dataset": dataset} for model, dataset in subjects]

    def check_pairs(self, pairs: Pairs) -> None:
        """Refuse unknown pairs, and checkpoints without a common question."""
        for pair in () if isinstance(pairs, str) else pairs:
            if not any(set(pair) <= set(names) for names in self.checkpoints.values()):
                listed = "; ".join(", ".join(names) for names in self.checkpoints.values())
                raise ValueError(
                    f"pairs has {':'.join(pair)}, but the checkpoints are {listed}; name two "
                    "of one model."
                )
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
        if not self.has_common():
            raise ValueError(
                "No two checkpoints of a model answered a question in common; write "
                "question_id in one way at all checkpoints."
            )

    def has_common(self) -> bool:
        """Return whether two checkpoints of a model answered a question in common."""
        return any(
            rows.drop_duplicates(["checkpoint", "question_id"])["question_id"]
            .duplicated()
            .any()
            for rows in self.predictions.values()
        )

    def assumptions(self, settings: EvaluationSettings) -> list[str]:
        """Return sentences on the order of the checkpoints, the files and the contrast sets."""
        orders = [f"{model}: {' → '.join(names)}" for model, names in self.checkpoints.items()]
        return [
            f"Checkpoints in order, {'; '.join(orders)}.",
            *self.notes,
            *self._few_groups(),
            f"Contrast sets of fewer than {settings.min_contrast} questions are left out.",
        ]

    def _few_groups(self) -> list[str]:
        """Return a sentence on each dataset with so few groups that intervals are unsure."""
        rows = self.all_predictions.drop_duplicates(["dataset", "question_id"])
        counts = rows.groupby("dataset", sort=False)[["group", "question_id"]].nunique()
        return [
            f"The {n:,} questions of {dataset} are in {groups} groups, each of which counts as "
            f"one: intervals of fewer than {FEW_GROUPS} groups are too narrow. If the groups "
            "are categories, leave the column group out."
            for dataset, groups, n in counts.itertuples()
            if 1 < groups < min(FEW_GROUPS, n)
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


def checkpoints_by_model(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return the checkpoints of each model in the order of the rows."""
    names_of: dict[str, list[str]] = {}
    for model, checkpoint in distinct_rows(rows, ["model", "checkpoint"]):
        names_of.setdefault(model, []).append(checkpoint)
    return names_of


def distinct_rows(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the distinct values of some columns as texts, in the order of the rows."""
    pairs = rows[list(columns)].drop_duplicates().astype(str).drop_duplicates()
    return list(pairs.itertuples(index=False, name=None))


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


def checkpoint_names(checkpoints: Sequence[str]) -> list[str]:
    """Return the names of checkpoints as text."""
    if isinstance(checkpoints, str) or not isinstance(checkpoints, Iterable):
        raise ValueError(f"checkpoints is {checkpoints!r}; give a list of names.")
    names = [str(name) for name in checkpoints]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"checkpoints is {names}; name each evaluation checkpoint once.")
    return names

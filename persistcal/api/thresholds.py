"""Select a threshold on a checkpoint, check it on a later one, or certify it there."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.api.evaluate import align_inputs
from persistcal.evaluation import relabelling
from persistcal.evaluation.aligned import Aligned, Subject, align
from persistcal.evaluation.predictions import Series, drop_noise
from persistcal.evaluation.settings import EvaluationSettings, Pairs
from persistcal.evaluation.thresholds import (
    answer_above,
    check_thresholds,
    labelled_questions,
)
from persistcal.readers.columns import match_columns
from persistcal.readers.inputs import SUBJECT, PredictionTables, make_settings
from persistcal.readers.study import read_predictions
from persistcal.report.phrases import (
    chance,
    exact_percent,
    joined,
    percent,
    possible_errors,
    shown_threshold,
    threshold_sentences,
)
from persistcal.store import artifacts
from persistcal.store.files import write_whole
from persistcal.store.sheets import (
    DRAWN_FROM,
    Sheet,
    SheetError,
    SheetRow,
    append_to_sheet,
    check_shown,
    check_source,
    digest_of,
    filled_prefix,
    find_rows,
    read_drawn,
    read_mark,
    write_sheet,
)
from persistcal.store.tables import select_rows
from persistcal.store.user_files import UserTableError, name_files_in_errors, read_file

SEED = 17  # seed of the random order of the answers
TO_FILL = "correct"
PLAN = "planned_looks"  # the same in all rows, so that a deleted row changes no plan
SHOWN = ["question", "references", "earlier_answer", "later_answer"]
COLUMNS = ["order", "question_id", *SHOWN, PLAN, DRAWN_FROM, TO_FILL]  # a sheet's columns
TEXTS = {"answer": "later_answer"}  # columns of a file with texts


@dataclass(frozen=True)
class ThresholdCheck:
    """Thresholds that were selected on earlier checkpoints, checked on later ones.

    Attributes
    ----------
    tables : dict of str to DataFrame
        "thresholds": a row per model, dataset, pair, estimator and seed with the threshold, the
        precision and coverage at both checkpoints with intervals, and the verdict "kept",
        "broken", "undecided", or empty if no threshold reaches the target. "threshold_cells":
        counts of questions by the checkpoints that answer them above the threshold, and by
        correctness. "confident_regressions": questions that both checkpoints answer above the
        threshold, the earlier one correctly and the later one not. "selective": AURC, AUGRC and
        PRR.
    subjects : dict
        Aligned predictions, by model and dataset.
    """

    tables: dict[str, pd.DataFrame]
    subjects: dict[Subject, Aligned] = field(repr=False)

    def summary(self, labels: dict[str, str] | None = None) -> str:
        """Return one sentence per pair and estimator; `labels` are names of estimators."""
        thresholds = self.tables["thresholds"]
        places = list(thresholds.groupby(SUBJECT, sort=False))
        lines = [
            (f"{', '.join(map(str, place))}. " if len(places) > 1 else "") + sentence
            for place, rows in places
            for sentence in threshold_sentences(rows, labels or {})
        ]
        return "\n".join([*lines, *possible_errors(thresholds["verdict"])])


def threshold(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str] | None = None,
    *,
    precision: float,
    delta: float = 0.1,
    pairs: Pairs = "all",
    n_replicates: int = 10_000,
    seed: int = 17,
) -> ThresholdCheck:
    """Select a threshold on each earlier checkpoint, and test whether a later one keeps it.

    Parameters
    ----------
    predictions, checkpoints, pairs
        As for `persistcal.evaluate`.
    precision : float
        The share of correct answers among the answers at or above the threshold, such as 0.9.
    delta : float, default=0.1
        Largest probability that a selected threshold does not reach the precision on the
        earlier checkpoint's questions at large.
    n_replicates, seed : int
        Bootstrap of the change in precision.

    Raises
    ------
    ValueError
        If there is only one checkpoint, a target is not between 0 and 1, or predictions are
        invalid as described for `persistcal.evaluate`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"checkpoint": ["a"] * 40 + ["b"] * 40, "question_id": [*range(40)] * 2}
    >>> rows |= {"confidence": [0.9] * 80, "correct": [1] * 40 + [0, 1] * 20}
    >>> found = threshold(pd.DataFrame(rows), precision=0.9)
    >>> found.tables["thresholds"]["verdict"].item()
    'broken'
    """
    settings = make_settings(
        pairs=pairs, n_replicates=n_replicates, seed=seed, precision=precision, delta=delta
    )
    inputs = read_predictions(predictions, checkpoints, settings)
    return check_inputs(inputs, settings)


def check_inputs(inputs: PredictionTables, settings: EvaluationSettings) -> ThresholdCheck:
    """Select and check the thresholds of all predictions."""
    for model, names in inputs.checkpoints.items():
        if len(names) < 2:
            raise ValueError(
                f"model {model} has only the checkpoint {names[0]!r}; give a later one, on "
                "which its threshold is checked."
            )
    subjects = align_inputs(inputs, settings)
    for data in subjects.values():
        data.warned()
    checked = check_thresholds(subjects, inputs.answers, settings)
    return ThresholdCheck(checked._asdict(), subjects)


def read_looks(path: str | Path) -> pd.DataFrame:
    """Return the table LOOKS of a file, if there is one; refuse impossible numbers."""
    if not Path(path).exists():
        return artifacts.empty(artifacts.LOOKS)
    looks = artifacts.read_csv(path, artifacts.LOOKS)
    most = {"level": 1, "target": 1, "delta": 1, "error_so_far": len(looks)}
    possible = {
        "n_labels": looks["n_labels"].between(1, looks["n_answers"]),
        "n_correct": looks["n_correct"].between(0, looks["n_labels"]),
        **{name: looks[name].gt(0) & looks[name].le(end) for name, end in most.items()},
        **{
            name: ~(looks[name].lt(0) | looks[name].gt(1)) for name in ("threshold", "coverage")
        },
    }
    for name, is_possible in possible.items():
        for row in np.flatnonzero(~is_possible)[:1]:
            raise ValueError(
                f"{path}: row {row + 2} has the {name} {looks[name].iloc[row]:g}, which no "
                "look has; restore the file, which counts the looks at the labels."
            )
    return looks


class Relabelling:
    """The answers of the later of two checkpoints, with the confidences of chosen estimators.

    A question counts if both checkpoints answered it; a group has one question. `texts` has the
    columns question_id, and any of question, references and answer, for predictions, which have
    no texts.
    """

    def __init__(
        self,
        inputs: PredictionTables,
        estimators: Sequence[str],
        texts: pd.DataFrame | None = None,
    ) -> None:
        if len(inputs.subjects()) != 1:
            listed = "; ".join(", ".join(subject.values()) for subject in inputs.subjects())
            raise ValueError(
                f"a sheet is for one model and dataset, and the files have {listed}; give the "
                "files of one of them, or --pool for folders."
            )
        [self.subject] = inputs.subjects()
        self.names = inputs.checkpoints[self.subject["model"]]
        if len(self.names) != 2:
            raise ValueError(
                f"a sheet is for two checkpoints, and the files have {', '.join(self.names)}."
            )
        answers = align(inputs.all_predictions, self.names).warned().answers
        series_of: dict[str, Series] = {}  # the first seed of each estimator
        for series in sorted(answers.confidence, key=lambda series: series.estimator):
            if not estimators or series.estimator in estimators:
                series_of.setdefault(series.estimator, series)
        if len(series_of) > 1 and not estimators:
            raise ValueError(
                "the estimators of a sheet share --delta; choose one or more with --estimator "
                f"from {', '.join(series_of)}."
            )
        answered = labelled_questions(answers, [0, 1], seed=SEED)
        if not len(answered):
            raise ValueError(
                f"{' and '.join(self.names)} have no question in common; give files with the "
                "same question ids."
            )
        self.ids: np.ndarray = answers.questions[answered]
        self.confidence = {
            estimator: drop_noise(answers.confidence[series][1, answered])
            for estimator, series in series_of.items()
        }
        self.correct = answers.correct[1, answered] == 1
        self._order = relabelling.draw_order(len(answered), SEED)
        self._texts = self._collect_texts(inputs, texts)

    def _collect_texts(
        self, inputs: PredictionTables, texts: pd.DataFrame | None
    ) -> pd.DataFrame:
        """Return the columns of `SHOWN` by question."""
        answers = select_rows(inputs.answers, self.subject).pivot(
            index="question_id", columns="checkpoint", values="answer"
        )
        questions = select_rows(inputs.questions, {"dataset": self.subject["dataset"]})
        by_question = questions.set_index("question_id")
        table = pd.DataFrame(index=self.ids, columns=SHOWN, dtype=object)
        table["question"] = by_question["question"].reindex(self.ids)
        self._asked = table["question"].dropna().tolist()  # without those of `texts`
        table["references"] = by_question["references"].reindex(self.ids)
        for column, name in zip(("earlier_answer", "later_answer"), self.names, strict=True):
            table[column] = answers[name].reindex(self.ids)
        self._without_text: set[str] = set()  # questions that a file of texts lacks
        self._has_answers = bool(table["later_answer"].notna().any())
        if texts is not None:
            self._without_text = {*self.ids} - {*texts["question_id"]}
            rows = texts.rename(columns=TEXTS).set_index("question_id").reindex(self.ids)
            rows = rows[rows.columns.intersection(SHOWN)]
            table[rows.columns] = rows
        table["references"] = table["references"].map(
            lambda of: " | ".join(map(str, of)) if isinstance(of, list | np.ndarray) else of
        )
        return table

    def source(self) -> str:
        """Return a digest of the questions, answers and confidences that a sheet is drawn from.

        Predictions lack answers, so the name of the checkpoint replaces them.
        """
        answers = self._texts["later_answer"] if self._has_answers else [self.names[1]]
        content = [*self._asked, *answers]
        confidence = np.round(np.concatenate([*self.confidence.values()]), 12).tolist()
        names = ", ".join(self.confidence)
        return digest_of(SEED, names, self.ids.tolist(), content, confidence)

    def write_sheet(self, path: str, sizes: Sequence[int]) -> str:
        """Write the answers to label next, or add them to a sheet; return a sentence.

        `sizes` are the numbers of labels at the planned looks; the largest is the size of the
        sheet. The sheet hides confidences and labels, which could sway the person who fills it
        in.
        """
        planned, n_answers = sorted(set(sizes)), len(self.ids)
        if not 1 <= planned[0] <= planned[-1] <= n_answers:
            raise ValueError(
                f"{planned[-1]} labels are asked for; give a number from 1 to {n_answers}, the "
                "number of answers."
            )
        present = self._present(path)
        listed = find_rows(present, "question_id", set(self.ids)) if present else {}
        plan = f"at {joined([*map(str, planned)])} labels"  # a text for every spreadsheet
        if present:
            plan = present.rows[0].cells[PLAN]
        rows = [
            {
                "order": place + 1,
                "question_id": self.ids[position],
                **self._texts.loc[self.ids[position]],
                PLAN: plan,
                DRAWN_FROM: self.source(),
            }
            for place, position in enumerate(self._order[: planned[-1]])
            if self.ids[position] not in listed
        ]
        lacking = [r["question_id"] for r in rows if r["question_id"] in self._without_text]
        if lacking:
            raise ValueError(
                f"--texts has no row for {len(lacking)} of the {len(rows)} answers, first for "
                f"question {lacking[0]!r}; add them, or leave --texts out."
            )
        if present is None:
            write_whole(path, write_sheet(COLUMNS, rows))
        elif rows:
            append_to_sheet(present, rows)
        size = f"{len(listed) + len(rows):,} answers"
        size += f", {len(rows):,} of which are new" if present else ""
        return (
            f"Sheet: {path}, {size}. Fill in its column {TO_FILL} with 1 or 0, from the top "
            "and without gaps."
        )

    def _present(self, path: str) -> Sheet | None:
        """Return the sheet at `path` if it has entries; refuse other answers' sheets."""
        if not Path(path).exists():
            return None
        remedy = (
            "it is no sheet of these answers and this estimator: move it away, or give "
            "another folder as --out"
        )
        try:
            sheet = read_drawn(path, COLUMNS)
        except SheetError as error:
            raise SheetError(f"{error} Nothing was written; {remedy}.") from error
        if not sheet.has_entries([name for name in COLUMNS if name != TO_FILL]):
            return None
        check_source(
            sheet, self.source(), f"someone has written into it, so it is kept; {remedy}"
        )
        return sheet

    def label_curve(
        self, settings: EvaluationSettings, step: Callable[[str], None]
    ) -> pd.DataFrame:
        """Return the thresholds that sheets of growing sizes certify."""
        if len(self.confidence) > 1:
            raise ValueError("a label curve is of one estimator; keep one name at --estimator.")
        return relabelling.measure_label_curve(
            next(iter(self.confidence.values())),
            self.correct,
            precision=settings.precision,
            delta=settings.delta,
            n_labels=relabelling.curve_sizes(len(self.ids)),
            step=step,
        )

    def certify(
        self, path: str, earlier: pd.DataFrame, settings: EvaluationSettings
    ) -> tuple[pd.DataFrame, list[str], bool]:
        """Return all looks, a sentence per estimator, and whether each has a threshold.

        `earlier` are the looks so far. Estimators share the error probability of a look,
        because their labels are the same.
        """
        precision, delta = settings.precision, settings.delta
        planned, labels = self._read_labels(path)
        place = {**self.subject, "checkpoint": self.names[1]}
        seen = select_rows(earlier, place)
        source, n_labels = self.source(), len(labels)
        sizes = seen.loc[seen[DRAWN_FROM] == source, "n_labels"].tolist()
        look = relabelling.take_look(n_labels, planned, sizes, delta)
        look = look._replace(level=look.level / len(self.confidence))
        levels = seen[[DRAWN_FROM, "n_labels", "estimator", "level"]].to_numpy().tolist()
        looks: dict[Any, float] = {}
        levels += [[source, n_labels, name, look.level] for name in self.confidence]
        for *key, level in levels:
            looks[tuple(key)] = max(level, looks.get(tuple(key), 0))
        total, n_looks = sum(looks.values()), len({key[:2] for key in looks})
        error = f"error probability {chance(look.level * len(self.confidence))}"
        if len(self.confidence) > 1:
            error += f" for all {len(self.confidence)} estimators together"
        if n_looks > 1 or not look.planned:
            kind = "a planned look" if look.planned else "an unplanned look"
            error += f" at {kind}; {chance(total)} over all {n_looks} looks"
        rows: list[Any] = earlier.to_dict("records")
        texts = []
        for name, confidence in self.confidence.items():
            certified = relabelling.certify_threshold(
                confidence,
                self._order[:n_labels],
                labels,
                precision=precision,
                delta=look.level,
            )
            row = {
                **place,
                "estimator": name,
                DRAWN_FROM: source,
                **look._asdict(),
                "n_correct": int(labels.sum()),
                "target": precision,
                "delta": delta,
                "error_so_far": total,
                "n_answers": len(self.ids),
                "threshold": np.nan if certified is None else certified,
                "coverage": np.nan,
            }
            text = f"{name}: " if len(self.confidence) > 1 else ""
            text += f"{n_labels:,} labels certify "
            if certified is None:
                text += (
                    f"no threshold with {exact_percent(precision)} precision on "
                    f"{self.names[1]} ({error}); label more answers with a larger --sheet."
                )
            else:
                reached = answer_above(certified, confidence, confidence >= 0)
                row["coverage"] = reached.coverage
                text += (
                    f"{exact_percent(precision)} precision on the {len(self.ids):,} answers of "
                    f"{self.names[1]} at the threshold {shown_threshold(certified)}, with a "
                    f"coverage of {percent(reached.coverage)} ({error})."
                )
            rows.append(row)
            texts.append(text)
        table = pd.DataFrame(rows, columns=artifacts.LOOKS.schema.names)
        is_certified = not table["threshold"].tail(len(texts)).isna().any()
        return table.drop_duplicates([*artifacts.LOOKS.key], keep="last"), texts, is_certified

    def _check_rows(self, sheet: Sheet, rows: dict[str, SheetRow]) -> None:
        """Refuse rows with cells of other questions, which sorting one column makes."""
        for place, (name, row) in enumerate(rows.items(), start=1):
            order = row.cells["order"].strip().partition(".")[0]
            if order.isdigit() and int(order) != place:
                raise sheet.refuse(
                    row,
                    f"has the order {order} and question {name!r}, which has {place}: a column "
                    "was sorted without the others; restore the rows from the sheet as drawn.",
                )
            for column, text in self._texts.loc[name].dropna().items():
                check_shown(sheet, row, str(column), text)

    def _read_labels(self, path: str) -> tuple[list[int], NDArray[np.bool_]]:
        """Return the sizes of the planned looks of a sheet, and its labels in random order."""
        if not Path(path).exists():
            raise ValueError(f"{path}: there is no such file; give a sheet from --sheet.")
        sheet = read_drawn(path, COLUMNS)
        remedy = (
            "give the files and the estimator with which it was drawn, or draw and fill in a "
            "sheet of these"
        )
        check_source(sheet, self.source(), remedy)
        rows = find_rows(sheet, "question_id", set(self.ids))
        drawn = self.ids[self._order[: len(rows)]]
        for place, name in enumerate(drawn, start=1):
            if name not in rows:
                raise ValueError(
                    f"{path}: lacks the row of question {name!r}, number {place} of the random "
                    f"order; --sheet {len(rows)} adds it again."
                )
        ordered = [rows[name] for name in drawn]
        self._check_rows(sheet, dict(zip(drawn, ordered, strict=True)))
        entries = [(row, read_mark(sheet, row, TO_FILL)) for row in ordered]
        n_labels = filled_prefix(sheet, entries)
        if not n_labels:
            raise ValueError(f"{path}: no answer is labelled yet; fill in {TO_FILL!r}.")
        plan = ordered[0].cells[PLAN]
        for row in ordered:
            if row.cells[PLAN] != plan:
                raise sheet.refuse(
                    row,
                    f"plans looks {row.cells[PLAN]!r}, and the first row {plan!r}; restore the "
                    "column from the sheet as drawn.",
                )
        planned = [int(size) for size in re.findall(r"\d+", plan)]
        return planned, np.array([mark == 1 for _, mark in entries[:n_labels]])


def read_texts(path: str) -> pd.DataFrame:
    """Return the texts of a file for a sheet, a row per question."""
    columns = ["question_id", *SHOWN, *TEXTS]
    with name_files_in_errors(path):
        texts = read_file(path, known_names=columns, lists=["references"])
        texts = texts.rename(columns=match_columns([*map(str, texts)], columns, {}))
        if "question_id" not in texts or not set(texts) & set(columns[1:]):
            raise UserTableError(f"has no question_id, or none of {', '.join(columns[1:])}")
        if (repeated := texts["question_id"].duplicated()).any():
            name = texts["question_id"][repeated].iloc[0]
            raise UserTableError(f"question {name!r} is repeated; keep one row")
    return texts.astype({"question_id": str})

"""`persistcal threshold`: tables of thresholds, a sheet of answers to label, its evaluation."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from persistcal.command.files import IMPORTED, StudyOfFiles, rows_about
from persistcal.evaluation.predictions import ABSENT, Series, arrange
from persistcal.evaluation.relabelling import LaterAnswers, certify_threshold, draw_sheet
from persistcal.evaluation.selective import selective_metrics
from persistcal.evaluation.thresholds import (
    add_answers,
    answer_above,
    check_target,
    check_thresholds,
)
from persistcal.judge.contradictions import same_answers
from persistcal.report.threshold_views import percent, threshold_sentences
from persistcal.store import artifacts
from persistcal.store.files import exists, read_text
from persistcal.store.tables import Table

TO_FILL = "correct"
SEED = 17  # of the draw of a sheet, and of the bootstrap
SHOWN = ["question_id", "question", "references", "earlier_answer", "later_answer"]
SHEET = [*SHOWN, "inclusion_probability", TO_FILL]
TABLES: dict[str, Table] = {
    "thresholds": artifacts.THRESHOLDS,
    "threshold_cells": artifacts.THRESHOLD_CELLS,
    "confident_regressions": artifacts.CONFIDENT_REGRESSIONS,
    "selective": artifacts.SELECTIVE,
}


def threshold_tables(
    study: StudyOfFiles, *, precision: float, delta: float
) -> dict[str, pd.DataFrame]:
    """Return the tables of `TABLES` for all predictions of a study, with answers' texts."""
    check_target(precision, delta)
    made: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for (model, dataset, _), rows in study.predictions.items():
        checkpoints = study.checkpoints[model]
        if len(checkpoints) < 2:
            raise ValueError(
                f"model {model} has only the checkpoint {checkpoints[0]!r}; give a file of a "
                "later one, on which its threshold is checked."
            )
        checked = check_thresholds(
            rows,
            checkpoints,
            precision=precision,
            delta=delta,
            seed=SEED,
        )
        tables = *checked, selective_metrics(rows, checkpoints)
        for name, table in zip(TABLES, tables, strict=True):
            made[name].append(table.assign(model=model, dataset=dataset))
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in made.items()}
    joined["confident_regressions"] = add_answers(
        joined["confident_regressions"], study.answers
    )
    return {name: joined[name][table.schema.names] for name, table in TABLES.items()}


def threshold_lines(tables: dict[str, pd.DataFrame], labels: dict[str, str]) -> list[str]:
    """Return one sentence per model, dataset, pair and estimator."""
    thresholds = tables["thresholds"]
    return [
        sentence
        for _, rows in thresholds.groupby(["model", "dataset"], sort=False)
        for sentence in threshold_sentences(rows, labels)
    ]


class Later:
    """The answers of the later of two checkpoints, with one estimator's confidences."""

    def __init__(self, study: StudyOfFiles, estimators: Sequence[str]) -> None:
        if len(study.predictions) != 1:
            names = ", ".join(sorted({name for *_, name in study.predictions} - {IMPORTED}))
            raise ValueError(
                f"a sheet is for one model, dataset and estimator, and the files have several"
                f"{f' ({names})' if names else ''}; choose one with --estimator."
            )
        [(self.place, rows)] = [
            ({"model": m, "dataset": d}, rows) for (m, d, _), rows in study.predictions.items()
        ]
        self.names = study.checkpoints[self.place["model"]]
        if len(self.names) != 2:
            raise ValueError(
                f"a sheet is for two checkpoints, and the files have {', '.join(self.names)}."
            )
        self.study, self.answers = study, arrange(rows, self.names)
        found = [
            s for s in self.answers.confidence if not estimators or s.estimator in estimators
        ]
        if len({series.estimator for series in found}) != 1:
            known = ", ".join(sorted({s.estimator for s in self.answers.confidence}))
            raise ValueError(f"a sheet is for one estimator; choose one of {known}.")
        self.series: Series = found[0]  # of several seeds the first
        self.questions = np.flatnonzero((self.answers.correct != ABSENT).all(axis=0))

    @property
    def ids(self) -> np.ndarray:
        """The ids of the questions that both checkpoints answered."""
        return self.answers.questions[self.questions]

    @property
    def confidence(self) -> np.ndarray:
        """The later checkpoint's confidences."""
        return self.answers.confidence[self.series][1, self.questions]

    def with_carried(self) -> LaterAnswers:
        """Return the later answers with the earlier labels of unchanged ones."""
        clusters = rows_about(self.study.clusters, self.place)
        unchanged = same_answers(clusters)(*self.names) or set() if len(clusters) else set()
        carried = np.where(
            np.isin(self.ids, list(unchanged)),
            self.answers.correct[0, self.questions].astype(float),
            np.nan,
        )
        return LaterAnswers(self.confidence, carried)

    def sheet(self, n_labels: int) -> pd.DataFrame:
        """Return the answers to label next: columns `SHEET`.

        The sheet hides confidences and labels, which could sway the person who fills it in.
        """
        answers = self.with_carried()
        drawn = draw_sheet(answers, n_labels, seed=SEED)
        ids = self.ids[drawn["position"]]
        texts = rows_about(self.study.answers, self.place).pivot(
            index="question_id", columns="checkpoint", values="answer"
        )
        asked = rows_about(self.study.questions, {"dataset": self.place["dataset"]})
        known = asked.set_index("question_id")
        columns: dict[str, Any] = {
            "question_id": ids,
            "question": known["question"].reindex(ids).to_numpy(),
            "references": [
                " | ".join(r) if isinstance(r, list | np.ndarray) else ""
                for r in known["references"].reindex(ids)
            ],
            "earlier_answer": texts[self.names[0]].reindex(ids).to_numpy(),
            "later_answer": texts[self.names[1]].reindex(ids).to_numpy(),
            "inclusion_probability": drawn["inclusion_probability"],
            TO_FILL: "",
        }
        return pd.DataFrame(columns)[SHEET]

    def certify(
        self, filled: pd.DataFrame, path: str, *, precision: float, delta: float
    ) -> str:
        """Return what a filled sheet certifies, in one sentence."""
        check_target(precision, delta)
        labels = _read_labels(filled, path, self.ids)
        answers = self.with_carried()
        drawn = draw_sheet(answers, len(labels), seed=SEED)
        if set(self.ids[drawn["position"]]) != set(labels.index):
            raise ValueError(
                f"{path}: these are not the {len(labels)} answers that --sheet draws from "
                "these files; give the files and the estimator with which it was drawn."
            )
        drawn[TO_FILL] = labels.loc[self.ids[drawn["position"]]].to_numpy()
        found = certify_threshold(answers, drawn, precision=precision, delta=delta)
        n_carried = int((~np.isnan(answers.carried)).sum())
        known = f"{len(labels):,} labels and {n_carried:,} carried ones"
        if found is None:
            return (
                f"{known} certify no threshold with {percent(precision)} precision on "
                f"{self.names[1]}; draw a larger sheet with --sheet."
            )
        coverage = answer_above(found, answers.confidence, answers.confidence >= 0).coverage
        return (
            f"{known} certify {percent(precision)} precision on the {len(self.ids):,} answers "
            f"of {self.names[1]} at the threshold {found:.2f}, with a coverage of "
            f"{percent(coverage)} (error probability {percent(delta)})."
        )


def read_sheet(path: str) -> pd.DataFrame:
    """Return a filled sheet, all cells text."""
    if not exists(path):
        raise ValueError(f"{path}: there is no such file; give a sheet from --sheet.")
    return pd.read_csv(io.StringIO(read_text(path)), dtype=str, keep_default_na=False)


def _read_labels(filled: pd.DataFrame, path: str, known: np.ndarray) -> pd.Series:
    """Return the labels of a sheet by question, or refuse the sheet."""
    for column in ("question_id", TO_FILL):
        if column not in filled:
            raise ValueError(f"{path}: lacks the column {column!r} of a sheet from --sheet.")
    ids = filled["question_id"].astype(str)
    if (repeated := ids.duplicated()).any():
        raise ValueError(
            f"{path}: question {ids[repeated].iloc[0]!r} is there twice; keep one."
        )
    if not (familiar := ids.isin(known)).all():
        raise ValueError(
            f"{path}: question {ids[~familiar].iloc[0]!r} is not in the files; give the sheet "
            "that was drawn from these files."
        )
    entries = filled[TO_FILL].astype(str).str.strip().str.lower()
    meaning = {"1": 1, "yes": 1, "true": 1, "0": 0, "no": 0, "false": 0}
    if not (read := entries.isin(meaning)).all():
        row = int(np.argmin(read.to_numpy())) + 1
        raise ValueError(
            f"{path}: row {row} has {entries.iloc[row - 1]!r} in the column {TO_FILL!r}; label "
            "each answer 1 or 0."
        )
    return pd.Series(entries.map(meaning).to_numpy(), index=ids.to_numpy())

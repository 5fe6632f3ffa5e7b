"""Select a threshold on a checkpoint, check it on a later one, or certify it there."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from persistcal.api.inputs import (
    IMPORTED,
    PLACE,
    PredictionTables,
    Settings,
    read_predictions,
    select_rows,
)
from persistcal.evaluation import relabelling
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.predictions import ABSENT, Series, arrange, drop_noise
from persistcal.evaluation.thresholds import answer_above, check_target, check_thresholds
from persistcal.judge.run import same_answers
from persistcal.report.threshold_views import percent, threshold_sentences

TO_FILL = "correct"
SEED = 17  # for drawing a sheet


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
    """

    tables: dict[str, pd.DataFrame]

    def summary(self, labels: dict[str, str] | None = None) -> str:
        """Return one sentence per pair and estimator; `labels` are names of estimators."""
        places = list(self.tables["thresholds"].groupby(PLACE, sort=False))
        return "\n".join(
            (f"{', '.join(map(str, place))}. " if len(places) > 1 else "") + sentence
            for place, rows in places
            for sentence in threshold_sentences(rows, labels or {})
        )


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
    settings = Settings(pairs=pairs, n_replicates=n_replicates, seed=seed)
    check_target(precision, delta)
    inputs = read_predictions(predictions, checkpoints, settings)
    return check_inputs(inputs, settings, precision=precision, delta=delta)


def check_inputs(
    inputs: PredictionTables, settings: Settings, *, precision: float, delta: float
) -> ThresholdCheck:
    """Select and check the thresholds of all predictions."""
    check_target(precision, delta)
    for model, names in inputs.checkpoints.items():
        if len(names) < 2:
            raise ValueError(
                f"model {model} has only the checkpoint {names[0]!r}; give a later one, on "
                "which its threshold is checked."
            )
    checked = check_thresholds(
        inputs.predictions.values(),
        inputs.checkpoints,
        inputs.answers,
        precision=precision,
        delta=delta,
        pairs=settings.pairs,
        **settings.bootstrap,
    )
    return ThresholdCheck(checked._asdict())


class Relabelling:
    """The answers of the later of two checkpoints, with one estimator's confidences."""

    def __init__(self, inputs: PredictionTables, estimators: Sequence[str]) -> None:
        if len(inputs.predictions) != 1:
            names = ", ".join(sorted({name for *_, name in inputs.predictions} - {IMPORTED}))
            raise ValueError(
                f"a sheet is for one model, dataset and estimator, and the files have several"
                f"{f' ({names})' if names else ''}; choose one with --estimator."
            )
        [self.place] = inputs.places()
        [rows] = inputs.predictions.values()
        self.names = inputs.checkpoints[self.place["model"]]
        if len(self.names) != 2:
            raise ValueError(
                f"a sheet is for two checkpoints, and the files have {', '.join(self.names)}."
            )
        answers = arrange(rows, self.names)
        series_of: dict[str, Series] = {}  # the first seed of each estimator
        for series in answers.confidence:
            if not estimators or series.estimator in estimators:
                series_of.setdefault(series.estimator, series)
        if len(series_of) != 1:
            listed = ", ".join(sorted({series.estimator for series in answers.confidence}))
            raise ValueError(f"a sheet is for one estimator; choose one of {listed}.")
        [chosen] = series_of.values()
        both = np.flatnonzero((answers.correct != ABSENT).all(axis=0))
        self.inputs = inputs
        # Of the questions that both checkpoints answered
        self.ids: np.ndarray = answers.questions[both]
        self.later_confidence = drop_noise(answers.confidence[chosen][1, both])
        self.correct = answers.correct[:, both]

    def with_carried(self) -> relabelling.LaterAnswers:
        """Return the later answers with the earlier labels of unchanged ones."""
        clusters = select_rows(self.inputs.clusters, self.place)
        unchanged = same_answers(clusters)(*self.names) or set() if len(clusters) else set()
        is_carried = np.isin(self.ids, list(unchanged))
        carried = np.where(is_carried, self.correct[0].astype(float), np.nan)
        return relabelling.LaterAnswers(self.later_confidence, carried)

    def sheet(self, n_labels: int) -> pd.DataFrame:
        """Return the answers to label next.

        The sheet hides confidences and labels, which could sway the person who fills it in.
        """
        answers = self.with_carried()
        drawn = relabelling.draw_sheet(answers, n_labels, seed=SEED)
        ids = self.ids[drawn["position"]]
        texts = select_rows(self.inputs.answers, self.place).pivot(
            index="question_id", columns="checkpoint", values="answer"
        )
        asked = select_rows(self.inputs.questions, {"dataset": self.place["dataset"]})
        by_question = asked.set_index("question_id")
        references = [
            " | ".join(r) if isinstance(r, list | np.ndarray) else ""
            for r in by_question["references"].reindex(ids)
        ]
        columns: dict[str, Any] = {
            "question_id": ids,
            "question": by_question["question"].reindex(ids).to_numpy(),
            "references": references,
            "earlier_answer": texts[self.names[0]].reindex(ids).to_numpy(),
            "later_answer": texts[self.names[1]].reindex(ids).to_numpy(),
            "inclusion_probability": drawn["inclusion_probability"],
            TO_FILL: "",
        }
        return pd.DataFrame(columns)

    def label_curve(
        self, *, precision: float, delta: float, step: Callable[[str], None]
    ) -> pd.DataFrame:
        """Return the thresholds that sheets of growing sizes certify."""
        check_target(precision, delta)
        return relabelling.measure_label_curve(
            self.with_carried(),
            self.correct[1] == 1,
            precision=precision,
            delta=delta,
            n_labels=relabelling.curve_sizes(len(self.ids)),
            step=step,
        )

    def certify(
        self, filled: pd.DataFrame, path: str, *, precision: float, delta: float
    ) -> str:
        """Return the threshold that a filled sheet certifies, in one sentence."""
        check_target(precision, delta)
        labels = _read_labels(filled, path, self.ids)
        answers = self.with_carried()
        drawn = relabelling.draw_sheet(answers, len(labels), seed=SEED)
        if set(self.ids[drawn["position"]]) != set(labels.index):
            raise ValueError(
                f"{path}: these are not the {len(labels)} answers that --sheet draws from "
                "these files; give the files and the estimator with which it was drawn."
            )
        drawn[TO_FILL] = labels.loc[self.ids[drawn["position"]]].to_numpy()
        certified = relabelling.certify_threshold(
            answers, drawn, precision=precision, delta=delta
        )
        n_carried = int((~np.isnan(answers.carried)).sum())
        labelled = f"{len(labels):,} labels and {n_carried:,} carried ones"
        if certified is None:
            return (
                f"{labelled} certify no threshold with {percent(precision)} precision on "
                f"{self.names[1]}; draw a larger sheet with --sheet."
            )
        coverage = answer_above(certified, answers.confidence, answers.confidence >= 0).coverage
        return (
            f"{labelled} certify {percent(precision)} precision on the {len(self.ids):,} "
            f"answers of {self.names[1]} at the threshold {certified:.2f}, with a coverage of "
            f"{percent(coverage)} (error probability {percent(delta)})."
        )


def describe_curve(curve: pd.DataFrame) -> str:
    """Return a row of text for each number of labels."""
    shown = ["certified", "threshold", "precision", "coverage"]
    table = curve.pivot(index="n_labels", columns="labels", values=shown)
    kinds = [
        kind
        for kind in (relabelling.FRESH, relabelling.CARRIED)
        if kind in set(curve["labels"])
    ]
    ordered = table.swaplevel(axis=1)[[(kind, name) for kind in kinds for name in shown]]
    ordered.columns.names = [None, None]
    return ordered.rename_axis("labels").to_string(float_format="{:.2f}".format, na_rep="-")


def read_sheet(path: str) -> pd.DataFrame:
    """Return a filled sheet, all cells text."""
    if not Path(path).exists():
        raise ValueError(f"{path}: there is no such file; give a sheet from --sheet.")
    text = Path(path).read_text(encoding="utf-8")
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def _read_labels(filled: pd.DataFrame, path: str, known: np.ndarray) -> pd.Series:
    """Return the labels of a sheet by question, or refuse the sheet."""
    for column in ("question_id", TO_FILL):
        if column not in filled:
            raise ValueError(f"{path}: lacks the column {column!r} of a sheet from --sheet.")
    ids = filled["question_id"].astype(str)
    if (repeated := ids.duplicated()).any():
        raise ValueError(f"{path}: question {ids[repeated].iloc[0]!r} is repeated; keep one.")
    if not (familiar := ids.isin(known)).all():
        raise ValueError(
            f"{path}: question {ids[~familiar].iloc[0]!r} is not in the files; give the sheet "
            "that was drawn from these files."
        )
    entries = filled[TO_FILL].astype(str).str.strip().str.lower()
    meaning = {"1": 1, "yes": 1, "true": 1, "0": 0, "no": 0, "false": 0}
    if not (is_label := entries.isin(meaning)).all():
        row = int(np.argmin(is_label.to_numpy())) + 1
        raise ValueError(
            f"{path}: row {row} has {entries.iloc[row - 1]!r} in the column {TO_FILL!r}; label "
            "each answer 1 or 0."
        )
    return pd.Series(entries.map(meaning).to_numpy(), index=ids.to_numpy())

"""Slices of the questions, such as topics: each question of the verdict within each slice.

All slices of all columns are tested at once, so a slice that did not change fails with the same
small probability however many there are (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned, Subject
from persistcal.evaluation.findings import (
    ACCURACY,
    CALIBRATION,
    FEW_QUESTIONS,
    NO,
    NONE,
    THRESHOLD,
    Finding,
    accuracy_finding,
    by_estimator,
    calibration_finding,
    find_constant,
    find_update,
    threshold_in_slice,
    to_row,
)
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, Mask, Series
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts
from persistcal.store.tables import select_rows

NOT_TESTED = "not tested"
LEAST, MOST = 20, 50  # questions of a slice that is tested, and slices


class SliceError(ValueError):
    """The questions cannot be sliced so."""


def slice_values(
    names: pd.DataFrame, dataset: str, questions: NDArray[np.object_]
) -> pd.DataFrame:
    """Return the values that slice some questions, a column per way to slice.

    `names` has dataset, question_id and these columns.
    """
    values = names[names["dataset"] == dataset].set_index("question_id")
    return values.drop(columns="dataset").reindex(questions).fillna("")


def category_names(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the names of slices by category, of each dataset with several categories."""
    rows = questions[(questions["split"] == "test") & ~questions["excluded"].astype(bool)]
    names = rows[["dataset", "question_id", "category"]]
    return names[names.groupby("dataset")["category"].transform("nunique") > 1]


def find_slices(
    names: pd.DataFrame,
    dataset: str,
    data: Aligned,
    settings: EvaluationSettings,
    *,
    by: bool = True,
) -> dict[str, Mask]:
    """Return a mask of the questions of each slice that both versions answered.

    Slices that a user asked for with `--by` are refused if they cannot be tested.
    """
    update = find_update(data.answers, data.sets, settings)
    if update is None:
        return {}
    shared = (data.answers.correct[list(update)] != ABSENT).all(axis=0)
    values = slice_values(names, dataset, data.answers.questions)
    columns = [str(column) for column in values]
    slices = {
        f"{column}={value}": (values[column] == value).to_numpy() & shared
        for column in columns
        for value in sorted(set(values[column][shared]))
    }
    listed = ", ".join(columns)
    if not by and len(slices) > MOST:
        return {f"{listed} ({len(slices)} values, at most {MOST} are tested)": shared & False}
    if len(slices) > MOST:
        raise SliceError(
            f"--by {listed} makes {len(slices)} slices of {dataset}; give a column with at "
            f"most {MOST} values."
        )
    if by and slices and max(mask.sum() for mask in slices.values()) < LEAST:
        raise SliceError(
            f"--by {listed}: no slice of {dataset} has {LEAST} questions that both versions "
            "answered; give a column with fewer values."
        )
    return slices


def make_slices(
    subjects: Mapping[Subject, Aligned],
    slices: Mapping[Subject, Mapping[str, Mask]],
    thresholds: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
) -> pd.DataFrame:
    """Return the rows of FINDINGS about slices, see `find_slices` and `make_findings`."""
    tables = [artifacts.empty(artifacts.FINDINGS)]
    for (model, dataset), masks in slices.items():
        data = subjects[model, dataset]
        update = find_update(data.answers, data.sets, settings[dataset])
        if not masks or update is None:
            continue
        earlier, later = (data.answers.checkpoints[k] for k in update)
        place = {"model": model, "dataset": dataset, "earlier": earlier, "later": later}
        of_pair = select_rows(thresholds, place)
        rows = _about_slices(data.answers, masks, update, settings[dataset], of_pair)
        tables.append(pd.DataFrame(rows).assign(**place)[artifacts.FINDINGS.schema.names])
    return pd.concat(tables[1:] or tables, ignore_index=True)


def _about_slices(
    answers: AnswerArrays,
    slices: Mapping[str, Mask],
    update: tuple[int, int],
    settings: EvaluationSettings,
    thresholds: pd.DataFrame,
) -> list[dict[str, Any]]:
    n_slices = sum(mask.sum() >= LEAST for mask in slices.values())
    constant = find_constant(answers, update)
    rated = {m: runs for m, runs in answers.estimators.items() if not constant[m]}
    n_compared = n_slices * max(1, len(rated))
    rows = []
    for name, mask in slices.items():
        if mask.sum() < LEAST:
            word = FEW_QUESTIONS if mask.any() else NOT_TESTED
            few = Finding(ACCURACY, NONE, word, evidence={"n_questions": int(mask.sum())})
            rows.append(to_row(("", ""), False, few) | {"slice": name})
            continue
        part = answers._replace(
            questions=answers.questions[mask],
            correct=answers.correct[:, mask],
            groups=answers.groups[mask],
        )
        ends = part.correct[list(update)]
        margin = settings.margin[ACCURACY]
        findings = [(("", ""), accuracy_finding(ends, part.groups, (), margin, n_slices))]
        for member, runs in rated.items():
            in_slice = [run[:, mask] for run in runs]
            n_seeds = answers.n_seeds(member)
            calibration = calibration_finding(
                part, in_slice, update, n_seeds, settings, n_compared, is_slice=True
            )
            findings.append((member, calibration))
        for seeds in by_estimator(thresholds):
            member = seeds[0]["train_dataset"], seeds[0]["estimator"]
            selected = [row for row in seeds if row["verdict"]]
            if member in rated and selected:
                runs = [
                    answers.confidence[Series(*member, int(row["seed"]))][update[1], mask]
                    for row in selected
                ]
                kept = threshold_in_slice(selected, runs, ends, part.groups, n_compared)
                findings.append((member, kept))
        rows += [
            to_row(member, False, finding) | {"slice": name} for member, finding in findings
        ]
    return rows


def worst_slices(rows: Sequence[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    """Return the slice with the largest shown fall or gap, for each question of the verdict."""
    failed = [row for row in rows if row["mark"] == NO]

    def size(row: Mapping[Any, Any]) -> float:
        return abs(row["value"]) if row["question"] == CALIBRATION else -row["upper"]

    worst: dict[str, Mapping[Any, Any]] = {}
    for row in sorted(failed, key=size, reverse=True):
        worst.setdefault(row["question"], row)
    return [worst[q] for q in (ACCURACY, CALIBRATION, THRESHOLD) if q in worst]

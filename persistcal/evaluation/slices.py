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
    NO,
    NONE,
    OPEN,
    THRESHOLD,
    YES,
    Finding,
    accuracy_finding,
    by_estimator,
    calibration_finding,
    find_update,
    is_constant,
    to_row,
)
from persistcal.evaluation.gaps import measure_share
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, Mask, Series
from persistcal.evaluation.samples import LEVEL
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.store import artifacts

LEAST, MOST = 20, 50  # questions of a slice that is tested, and slices
TOO_FEW = "too few questions"
_MARKS = {KEPT: YES, BROKEN: NO, UNDECIDED: OPEN}


class SliceError(ValueError):
    """The questions cannot be sliced so."""


def find_slices(
    names: pd.DataFrame,
    dataset: str,
    data: Aligned,
    settings: EvaluationSettings,
) -> dict[str, Mask]:
    """Return which questions belong to each slice, of those that both versions answered.

    `names` has dataset, question_id and a column per way to slice.
    """
    update = find_update(data.answers, data.sets, settings)
    if update is None:
        return {}
    shared = (data.answers.correct[list(update)] != ABSENT).all(axis=0)
    of = names[names["dataset"] == dataset].set_index("question_id")
    of = of.drop(columns="dataset").reindex(data.answers.questions).fillna("")
    columns = [str(column) for column in of]
    slices = {
        f"{column}={value}": (of[column] == value).to_numpy() & shared
        for column in columns
        for value in sorted(set(of[column][shared]))
    }
    listed = ", ".join(columns)
    if len(slices) > MOST:
        raise SliceError(
            f"--by {listed} makes {len(slices)} slices of {dataset}; give a column with at "
            f"most {MOST} values."
        )
    if slices and max(mask.sum() for mask in slices.values()) < LEAST:
        raise SliceError(
            f"--by {listed}: no slice of {dataset} has {LEAST} questions that both versions "
            "answered; give a column with fewer values."
        )
    return slices


def make_slices(
    subjects: Mapping[Subject, Aligned],
    names: pd.DataFrame,
    thresholds: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
) -> pd.DataFrame:
    """Return the rows of FINDINGS about slices, see `find_slices` and `make_findings`."""
    tables = [artifacts.empty(artifacts.FINDINGS)]
    for (model, dataset), data in subjects.items():
        slices = find_slices(names, dataset, data, settings[dataset])
        update = find_update(data.answers, data.sets, settings[dataset])
        if not slices or update is None:
            continue
        earlier, later = (data.answers.checkpoints[k] for k in update)
        place = {"model": model, "dataset": dataset, "earlier": earlier, "later": later}
        chosen = thresholds[(thresholds[[*place]] == [*place.values()]).all(axis=1)]
        rows = _about_slices(data.answers, slices, update, settings[dataset], chosen)
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
    rated = {
        member: runs
        for member, runs in answers.estimators.items()
        if not all(is_constant(run[k]) for run in runs for k in update)
    }
    n_compared = n_slices * max(1, len(rated))
    rows = []
    for name, mask in slices.items():
        if mask.sum() < LEAST:
            few = Finding(ACCURACY, NONE, TOO_FEW, evidence={"n_questions": int(mask.sum())})
            rows.append(to_row(("", ""), False, few) | {"slice": name})
            continue
        part = answers._replace(
            questions=answers.questions[mask],
            correct=answers.correct[:, mask],
            groups=answers.groups[mask],
        )
        ends = part.correct[list(update)]
        margin = settings.margin[ACCURACY]
        found = [(("", ""), accuracy_finding(ends, part.groups, (), margin, n_slices))]
        for member, runs in rated.items():
            chosen = [run[:, mask] for run in runs]
            n_seeds = len({s.seed for s in answers.confidence if s.member == member} - {0})
            calibration = calibration_finding(
                part, chosen, update, n_seeds, settings, n_compared, is_slice=True
            )
            found.append((member, calibration))
        for seeds in by_estimator(thresholds):
            member = seeds[0]["train_dataset"], seeds[0]["estimator"]
            selected = [row for row in seeds if row["verdict"]]
            if member in rated and selected:
                runs = [
                    answers.confidence[Series(*member, int(row["seed"]))][update[1], mask]
                    for row in selected
                ]
                found.append(
                    (member, _threshold(selected, runs, ends, part.groups, n_compared))
                )
        rows += [to_row(member, False, one) | {"slice": name} for member, one in found]
    return rows


def _threshold(
    seeds: Sequence[Mapping[Any, Any]],
    runs: Sequence[NDArray[np.float64]],
    ends: NDArray[np.int8],
    groups: NDArray[np.intp],
    n_compared: int,
) -> Finding:
    """Return whether the old thresholds keep their precision in a slice."""
    target, level = float(seeds[0]["target"]), 1 - LEVEL / n_compared / len(seeds)
    right, shares, verdicts = ends[1] == 1, [], []
    for row, confidence in zip(seeds, runs, strict=True):
        is_above = confidence >= row["threshold"]
        if not is_above.any():
            continue
        share, low, high = measure_share(right[is_above], groups[is_above], level)
        shares.append((share, low, high))
        verdicts.append(KEPT if low >= target else BROKEN if high < target else UNDECIDED)
    if len(shares) < len(seeds):
        return Finding(THRESHOLD, NONE, TOO_FEW, evidence={"target": target})
    worst = next(v for v in (BROKEN, UNDECIDED, KEPT) if v in verdicts)
    values, lower, upper = np.array(shares).T
    numbers = (float(values.mean()), float(lower.min()), float(upper.max()))
    evidence = {"target": target, "n_questions": len(right)}
    return Finding(THRESHOLD, _MARKS[worst], worst, *numbers, evidence=evidence)


def worst_slices(rows: Sequence[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    """Return the row of each question in which a test shows most, of rows about slices."""
    shown = [row for row in rows if row["mark"] == NO]

    def size(row: Mapping[Any, Any]) -> float:
        return abs(row["value"]) if row["question"] == CALIBRATION else -row["upper"]

    worst: dict[str, Mapping[Any, Any]] = {}
    for row in sorted(shown, key=size, reverse=True):
        worst.setdefault(row["question"], row)
    return [worst[q] for q in (ACCURACY, CALIBRATION, THRESHOLD) if q in worst]

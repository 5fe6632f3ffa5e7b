"""Decide by a policy whether the findings about an update pass, fail, or stay undecided.

A policy gives each question a limit. A finding passes if its interval is inside the limit, and
fails if the interval is outside. The functions that decide marks also decide this.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation import claims as words
from persistcal.evaluation.findings import (
    ACCURACY,
    CALIBRATION,
    FOLLOWING,
    NO,
    NONE,
    OPEN,
    THRESHOLD,
    YES,
    Finding,
    accuracy_mark,
    by_estimator,
    calibration_mark,
    deciding_gap,
    read_finding,
    threshold_finding,
    to_row,
)
from persistcal.store import artifacts

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
CODES = {PASS: 0, FAIL: 3, UNDECIDED: 4}
CONFIDENCE = "confidence"  # the key about following; its only limit is FOLLOWED
KEYS = {ACCURACY: ACCURACY, CALIBRATION: CALIBRATION, THRESHOLD: THRESHOLD}
KEYS |= {CONFIDENCE: FOLLOWING}
NO_DATA = "no data"
UNRATED = "no confidence that differs between questions"

Limit = float | str
Policy = Mapping[str, Limit]


class PolicyError(ValueError):
    """A policy cannot be applied."""


class Ruling(NamedTuple):
    """The result of one rule on one finding. The numbers are NaN without data."""

    model: str
    dataset: str
    earlier: str
    later: str
    estimator: str
    key: str
    limit: Limit
    result: str
    word: str
    value: float
    lower: float
    upper: float
    slice: str = ""


class Gate(NamedTuple):
    """The results of all rules of a policy."""

    rulings: list[Ruling]

    @property
    def result(self) -> str:
        """Return fail if a rule fails, else undecided if one is open or without rules."""
        results = {ruling.result for ruling in self.rulings}
        return next((r for r in (FAIL, UNDECIDED, PASS) if r in results), UNDECIDED)

    @property
    def exit_code(self) -> int:
        """Return 0 for pass, 3 for fail and 4 for undecided."""
        return CODES[self.result]


def check_policy(policy: Mapping[str, Any]) -> dict[str, Limit]:
    """Read the limits of a policy as numbers. Refuse unknown keys and impossible limits."""
    if not policy:
        raise PolicyError(f"The policy is empty; give {_examples()}.")
    checked: dict[str, Limit] = {}
    for key, value in policy.items():
        if key not in KEYS:
            raise PolicyError(f"The gate has the key {key!r}; give {_examples()}.")
        if key == CONFIDENCE:
            if value != words.FOLLOWED:
                raise PolicyError(f"The gate has confidence={value}; give confidence=followed.")
            checked[key] = value
            continue
        try:
            limit = float(value)
        except (TypeError, ValueError):
            limit = float("nan")
        low, high = (-1.0, 1.0) if key == ACCURACY else (0.0, 1.0)
        if not low <= limit < high or (key == THRESHOLD and not limit):
            raise PolicyError(f"The gate has {key}={value}; give {_examples()}.")
        checked[key] = limit
    return checked


def _examples() -> str:
    return "any of accuracy=-0.02 calibration=0.05 threshold=0.9 confidence=followed"


def close_gate(
    findings: pd.DataFrame,
    policy: Policy,
    *,
    by_dataset: Mapping[str, Policy] | None = None,
    estimators: Sequence[str] = (),
    unpaired: Mapping[tuple[str, str], str] | None = None,
) -> Gate:
    """Apply a policy to the rows of FINDINGS of each model and dataset.

    A slice of questions can fail. All questions decide anything else.

    Parameters
    ----------
    findings : DataFrame
        Rows of FINDINGS.
    policy : mapping of str to float or str
        Limits by key, which `check_policy` returns.
    by_dataset : mapping of str to mapping, optional
        Limits of a dataset, which replace limits of `policy`.
    estimators : sequence of str, optional
        The estimators in use; by default all but baselines.
    unpaired : mapping of (str, str) to str, optional
        The only checkpoint of a model and dataset without a pair.
    """
    place = ["model", "dataset", "earlier", "later"]
    further, rulings = by_dataset or {}, []
    for names, group in findings.groupby(place, sort=False):
        model, dataset, earlier, later = map(str, names)
        pair = model, dataset, earlier, later
        rows = group[
            group["estimator"].isin(["", *estimators])
            if estimators
            else ~group["baseline"].astype(bool)
        ]
        for key, limit in {**policy, **further.get(dataset, {})}.items():
            ruled = [
                _ruling(pair, read_finding(row), key, limit)._replace(
                    estimator=str(row["estimator"]), slice=str(row["slice"])
                )
                for row in rows[rows["question"] == KEYS[key]].to_dict("records")
            ]
            unrated = _ruling(pair, Finding(KEYS[key], NONE, UNRATED), key, limit)
            rulings += [ruling for ruling in ruled if not ruling.slice] or [unrated]
            rulings += [ruling for ruling in ruled if ruling.slice and ruling.result == FAIL]
    absent: list[tuple[str, str, str, Policy]] = [
        (model, dataset, f"only {name}", {**policy, **further.get(dataset, {})})
        for (model, dataset), name in (unpaired or {}).items()
    ]
    ruled_on = {*findings["dataset"], *(dataset for _, dataset, *_ in absent)}
    absent += [("", d, NO_DATA, limits) for d, limits in further.items() if d not in ruled_on]
    for model, dataset, why, limits in absent:
        rulings += [
            _ruling((model, dataset, "", ""), Finding(KEYS[key], NONE, why), key, limit)
            for key, limit in limits.items()
        ]
    return Gate(rulings)


def _ruling(
    pair: tuple[str, str, str, str], finding: Finding, key: str, limit: Limit
) -> Ruling:
    """Return whether a finding passes a rule, and the number and interval that decide."""
    mark, word = finding.mark, finding.word or NO_DATA
    numbers = finding.value, finding.lower, finding.upper
    if key == ACCURACY and mark != NONE:
        mark, _ = accuracy_mark(finding.lower, finding.upper, -float(limit))
    elif key == CALIBRATION and mark != NONE:
        mark, _ = calibration_mark(finding.evidence, float(limit))
        gap = deciding_gap(finding.evidence, float(limit))
        numbers = gap.value, gap.lower, gap.upper
    elif key == THRESHOLD and finding.evidence:
        if not finding.evidence["n_questions"]:
            word = "no question in common"
        elif mark == NONE:
            word = "no threshold is sure"
        elif mark == OPEN and word != UNDECIDED:
            word = f"{word}, but not every seed has a threshold"
    result = {YES: PASS, NO: FAIL}.get(mark, UNDECIDED)
    return Ruling(*pair, "", key, limit, result, word, *numbers)


def findings_of_thresholds(thresholds: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of FINDINGS about THRESHOLDS, of all pairs of checkpoints.

    A baseline gives all answers of a checkpoint the same confidence.
    """
    member = ["model", "dataset", "train_dataset", "estimator"]
    stated = predictions.groupby([*member, "seed", "checkpoint"], dropna=False)["confidence"]
    varies = (stated.max() > stated.min()).groupby(member, dropna=False).any()
    rated = set(varies.index[varies])
    rows = []
    for place, group in thresholds.groupby(["model", "dataset"], sort=False):
        for seeds in by_estimator(group):
            names = seeds[0]["train_dataset"], seeds[0]["estimator"]
            pair = {name: seeds[0][name] for name in ("earlier", "later")}
            row = to_row(names, (*place, *names) not in rated, threshold_finding(seeds))
            rows.append({"model": place[0], "dataset": place[1], **pair, **row})
    table = pd.DataFrame(rows).assign(slice="") if rows else None
    return artifacts.empty(artifacts.FINDINGS) if table is None else table

"""Findings about an update: a row per estimator and question of the verdict.

This is the only place that decides a mark, in one function per question. Terminal, JSON, page
and sentences only put its rows into words, see `persistcal.report.phrases`.

An update leads from the first to the last checkpoint that a study compares.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from persistcal.evaluation import claims as words
from persistcal.evaluation.aligned import DECIMALS, MEMBER, Aligned, Subject
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.predictions import ABSENT, AnswerArrays
from persistcal.evaluation.proportions import clustered_reach, compare_accuracies
from persistcal.evaluation.reliability import (
    N_DRAWS,
    CalibrationGap,
    checkpoint_calibration,
    measure_gaps,
    measure_share,
)
from persistcal.evaluation.samples import LEVEL
from persistcal.evaluation.settings import MARGINS, EvaluationSettings, Member
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED, rank_verdicts
from persistcal.store import artifacts
from persistcal.store.tables import select_rows

YES, NO, OPEN, NONE = "yes", "no", "open", "none"  # marks
WITH_LABELS = "with the labels"  # a mark: shown, if no answer flips by itself
ACCURACY, FOLLOWING = "accuracy", "following"  # questions
CALIBRATION, THRESHOLD = "calibration", "threshold"

RISES, HOLDS, CAN_BE_CHANCE = "rises", "holds", "can be chance"
FALLS, SLIPS = "falls", "falls, perhaps by less than the margin"
CALIBRATED = "calibrated"
OVER, UNDER = "over-confident", "under-confident"
UNCALIBRATED, NO_ERROR = "not calibrated", "no error shown"
NO_THRESHOLD, FEW_QUESTIONS = "none", "too few questions"

KEEP, LABEL = "keep", "label"  # next steps
ASK_TWICE, ASK_AFRESH = "ask twice", "ask without copies"

_FOLLOWING_MARKS = {
    words.FOLLOWED: YES,
    **dict.fromkeys((words.IF_DECLARED, words.MOVED), WITH_LABELS),
    **dict.fromkeys((words.NOT_MOVED, words.LOST, words.AGAINST, words.STILL), NO),
}
_THRESHOLD_MARKS = {KEPT: YES, BROKEN: NO, UNDECIDED: OPEN}
_DRAWS_PER_TEST = 40  # so that a p-value can be half of the adjusted level
_SIZES = ("left_out", "n_seeds", "n_compared", "halvings", "repeated", "flipped")
_SHARES = ("alike", "alike_between", "by_chance")
_COUNTS = ("improvement", "regression", "other_improvement", "other_regression")
_ENDS = ("lower_2_5pct", "upper_97_5pct")
_AT_THRESHOLD = ("earlier_precision", "later_precision", "earlier_coverage", "later_coverage")
_BY_SEED = ("seed", "verdict", "threshold", "confident_regressions", *_AT_THRESHOLD)

Rows = Sequence[Mapping[Any, Any]]


class Finding(NamedTuple):
    """The answer to one question: mark, word, number and interval, basis, and next step.

    `evidence` are the further numbers in texts on this question.
    """

    question: str
    mark: str
    word: str
    value: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    basis: str = ""
    next: str = ""
    evidence: Mapping[str, Any] = {}


def make_findings(
    subjects: Mapping[Subject, Aligned],
    claims: pd.DataFrame,
    states: pd.DataFrame,
    thresholds: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
) -> pd.DataFrame:
    """Return the table FINDINGS of all models and datasets.

    Parameters
    ----------
    subjects : mapping of (str, str) to Aligned
        By model and dataset.
    claims, states, thresholds : DataFrame
        The tables of these names; the last two can be empty.
    settings : mapping of str to EvaluationSettings
        By dataset.
    """
    tables = []
    for (model, dataset), data in subjects.items():
        answers, sets = data.answers, data.sets
        update = find_update(answers, sets, settings[dataset])
        if update is None:
            continue
        place = {"model": model, "dataset": dataset}
        pair = dict(
            zip(("earlier", "later"), (answers.checkpoints[k] for k in update), strict=True)
        )
        of_pair = [select_rows(table, {**place, **pair}) for table in (states, thresholds)]
        of_subject = select_rows(claims, place)
        findings = about_update(answers, sets, update, settings[dataset], of_subject, of_pair)
        tables.append(pd.DataFrame(findings).assign(**place, **pair, slice=""))
    if not tables:
        return artifacts.empty(artifacts.FINDINGS)
    return pd.concat(tables, ignore_index=True)[artifacts.FINDINGS.schema.names]


def find_update(
    answers: AnswerArrays, sets: Sequence[ContrastSet], settings: EvaluationSettings
) -> tuple[int, int] | None:
    """Return the positions of the first and the last checkpoint, None if no pair is compared.

    If a study lists its pairs, return the first listed checkpoint and the last checkpoint in a
    pair with it. Pairs without changed questions are skipped if others are left.
    """
    if not sets:
        return None
    earlier, later = sets[0].earlier, len(answers.checkpoints) - 1
    if not isinstance(settings.pairs, str):
        pairs = [pair for pair in sets if pair.earlier == earlier]
        later = max(pair.later for pair in [p for p in pairs if p.counts.changed] or pairs)
    return earlier, later


def about_update(
    answers: AnswerArrays,
    sets: Sequence[ContrastSet],
    update: tuple[int, int],
    settings: EvaluationSettings,
    claims: pd.DataFrame,
    of_pair: Sequence[pd.DataFrame],
) -> list[dict[str, Any]]:
    """Return the rows about one update, without model, dataset and checkpoints.

    `of_pair` are the rows of STATES and THRESHOLDS about the pair.
    """
    states, thresholds = of_pair
    ends = answers.correct[list(update)]
    used = [pair for pair in sets if pair.kept and pair.has_both_directions]
    shared = {"n_pairs": len(used), "min_direction": settings.min_direction}
    is_tested = states["metric"].eq("accuracy") & states["other_model"].fillna("").eq("")
    tested = states[is_tested].to_dict("records")
    accuracy = accuracy_finding(ends, answers.groups, tested, settings.margin[ACCURACY])
    rows = [to_row(("", ""), False, accuracy)]
    has_common, constant = accuracy.mark != NONE, find_constant(answers, update)
    n_compared = max(1, sum(not same for same in constant.values()))
    for member, runs in answers.estimators.items():
        of_member = select_rows(claims, dict(zip(MEMBER, member, strict=True)))
        rows_of_claim = of_member[of_member["word"].ne("")].to_dict("records")
        claim: Claim = {str(row["metric"]): row for row in rows_of_claim}
        moves = shared | (_moves(runs, ends, update) if has_common else {})
        n_seeds = answers.n_seeds(member)
        for finding in (
            following_finding(claim, moves),
            calibration_finding(answers, runs, update, n_seeds, settings, n_compared),
        ):
            rows.append(to_row(member, constant[member], finding))
    for seeds in by_estimator(thresholds):
        member = seeds[0]["train_dataset"], seeds[0]["estimator"]
        if member in constant:
            rows.append(to_row(member, constant[member], threshold_finding(seeds)))
    return rows


def to_row(member: Member, is_baseline: bool, finding: Finding) -> dict[str, Any]:
    """Return a finding as a row of FINDINGS, without model, dataset and checkpoints."""
    place = {"train_dataset": member[0], "estimator": member[1], "baseline": is_baseline}
    text = json.dumps(finding.evidence, default=lambda number: number.item())
    # JSON has neither NaN nor infinity
    text = text.replace("NaN", "null").replace("Infinity", "1e999")
    return {**place, **finding._asdict(), "evidence": text}


def read_finding(row: Mapping[Any, Any]) -> Finding:
    """Return a row of FINDINGS as a record."""
    evidence = json.loads(row["evidence"].replace("null", "NaN"))
    return Finding(**{n: row[n] for n in Finding._fields} | {"evidence": evidence})


def find_constant(answers: AnswerArrays, update: tuple[int, int]) -> dict[Member, bool]:
    """Return whether each estimator has one confidence for all questions of a checkpoint."""
    return {
        member: all(is_constant(run[k]) for run in runs for k in update)
        for member, runs in answers.estimators.items()
    }


def is_constant(confidence: NDArray[np.float64]) -> bool:
    """Return whether a confidence is the same for all questions that were answered."""
    stated = confidence[~np.isnan(confidence)]
    return not stated.size or bool(np.ptp(stated) == 0)


def accuracy_finding(
    ends: NDArray[np.int8],
    groups: NDArray[np.intp],
    tested: Rows = (),
    margin: float = MARGINS[ACCURACY],
    n_compared: int = 1,
) -> Finding:
    """Return whether the accuracy is kept between two checkpoints, (2, n_questions).

    `tested` is the row of STATES; groups determine its interval and test. The mark is about one
    pair of checkpoints, which the study names, so neither is adjusted, but for the slices of
    questions that are `n_compared`.
    """
    earlier, later = ends
    labels = ends[:, (ends != ABSENT).all(axis=0)]
    evidence: dict[str, Any] = {
        "n_questions": labels.shape[1],
        "gained": int(((earlier == 0) & (later == 1)).sum()),
        "lost": int(((earlier == 1) & (later == 0)).sum()),
        "has_groups": len(np.unique(groups)) < len(groups),
    }
    if not labels.size:
        return Finding(ACCURACY, NONE, "", evidence=evidence)
    z = float(ndtri(1 - LEVEL / 2 / n_compared))
    test = compare_accuracies(labels[0], labels[1], z)
    test = test._replace(p_value=min(1.0, test.p_value * n_compared))
    bootstrapped = [row for row in tested if not np.isnan(row["p_value"])]  # groups that differ
    if evidence["has_groups"] and bootstrapped:
        for row in bootstrapped:
            low, high, p_value = (float(row[name]) for name in (*_ENDS, "p_value"))
            test = test._replace(lower=low, upper=high, p_value=p_value)
    elif evidence["has_groups"]:
        shared = groups[(ends != ABSENT).all(axis=0)]
        reach = clustered_reach(labels[1] - labels[0], shared, 1 - LEVEL / n_compared)
        low, high = test.difference - reach, test.difference + reach
        test = test._replace(lower=low, upper=high, p_value=np.nan)
    elif test.p_value >= LEVEL:  # the exact test does not exclude 0, so the interval does not
        test = test._replace(lower=min(test.lower, 0.0), upper=max(test.upper, 0.0))
    mark, word = accuracy_mark(test.lower, test.upper, margin)
    evidence |= {"earlier": test.earlier, "later": test.later, "p_value": test.p_value}
    return Finding(
        ACCURACY, mark, word, test.difference, test.lower, test.upper, evidence=evidence
    )


def accuracy_mark(lower: float, upper: float, margin: float) -> tuple[str, str]:
    """Return mark and word of a difference: whether it is surely no fall beyond a margin."""
    if lower >= -margin:
        return YES, RISES if lower > 0 else HOLDS
    if upper < -margin:
        return NO, FALLS
    return OPEN, SLIPS if upper < 0 else CAN_BE_CHANCE


Claim = Mapping[str, Mapping[Any, Any]]  # rows of CLAIMS by metric


def following_finding(claim: Claim, moves: Mapping[str, Any]) -> Finding:
    """Return whether confidence followed the changes, with the statistic *moved*."""
    moved = claim.get("moved")
    if moved is None:
        return Finding(FOLLOWING, OPEN, words.TOO_FEW)
    word, numbers = moved["word"], ("value", "simultaneous_lower", "simultaneous_upper")
    counts = {name: None if pd.isna(moved[name]) else int(moved[name]) for name in _COUNTS}
    evidence = {
        **moves,
        **counts,
        "statistics": {name: [float(row[n]) for n in numbers] for name, row in claim.items()},
        "lacking": moved["lacking"],
        **{name: int(moved[name]) for name in _SIZES},
        **{name: float(moved[name]) for name in _SHARES},
    }
    mark, basis = _FOLLOWING_MARKS.get(word, OPEN), moved["basis"]
    next_step = ASK_TWICE if mark == WITH_LABELS else ""
    next_step = ASK_AFRESH if basis == words.COPIES else next_step
    value, lower, upper = evidence["statistics"]["moved"]
    return Finding(FOLLOWING, mark, word, value, lower, upper, basis, next_step, evidence)


def _moves(
    runs: Sequence[NDArray[np.float64]], ends: NDArray[np.int8], update: tuple[int, int]
) -> dict[str, Any]:
    """Return how confidence moved in gained and lost questions, and in all (means of seeds)."""
    earlier, later = (np.array([run[k] for run in runs]) for k in update)
    change = np.round(later - earlier, DECIMALS)
    gained, lost = (ends[0] == 0) & (ends[1] == 1), (ends[0] == 1) & (ends[1] == 0)
    answered = (ends != ABSENT).all(axis=0)
    changes, n = change[:, answered].ravel(), len(runs)
    falls = bool(changes.mean() < 0)
    return {
        "n_runs": n,
        "gained_up": (change[:, gained] > 0).sum() / n,
        "lost_down": (change[:, lost] < 0).sum() / n,
        "equal": (change[:, gained | lost] == 0).sum() / n,
        "means": [values[:, answered].ravel().mean() for values in (earlier, later)],
        "falls": falls,
        "share": float((changes < 0 if falls else changes > 0).mean()),
    }


def calibration_finding(
    answers: AnswerArrays,
    runs: Sequence[NDArray[np.float64]],
    update: tuple[int, int],
    n_seeds: int,
    settings: EvaluationSettings,
    n_compared: int = 1,
    *,
    is_slice: bool = False,
) -> Finding:
    """Return whether an estimator is calibrated at the later checkpoint, with its bias.

    The mark is adjusted for `n_compared` estimators, as the intervals of the gaps are. In a
    slice SmoothECE is tested only where the mark needs it.
    """
    rated = answers.rate(update[1], runs)
    gaps = measure_gaps(*rated, n_compared=n_compared)
    margin, bias = settings.margin[CALIBRATION], gaps[0]
    is_beyond = any(gap.is_beyond(margin) for gap in gaps)
    n_draws = max(N_DRAWS, _DRAWS_PER_TEST * n_compared) if is_beyond else N_DRAWS
    if is_slice and not is_beyond:
        n_draws = 1
    later = checkpoint_calibration(*rated, seed=settings.seed, n_draws=n_draws)
    evidence = later._asdict() | {
        "n_seeds": n_seeds,
        "margin": margin,
        "p_adjusted": min(1.0, later.p_calibrated * n_compared),
        "gaps": [list(gap) for gap in gaps],
    }
    mark, word = calibration_mark(evidence, margin)
    if mark == NO and not is_slice:
        earlier = checkpoint_calibration(*answers.rate(update[0], runs), seed=settings.seed)
        evidence["earlier"] = [earlier.value, earlier.noise_floor]
    return Finding(
        CALIBRATION, mark, word, bias.value, bias.lower, bias.upper, evidence=evidence
    )


def calibration_mark(evidence: Mapping[str, Any], margin: float) -> tuple[str, str]:
    """Return mark and word: whether the gaps are surely within a margin, or one beyond it."""
    gaps = [CalibrationGap(*numbers) for numbers in evidence["gaps"]]
    if all(gap.is_within(margin) for gap in gaps):
        return YES, CALIBRATED
    if not any(gap.is_beyond(margin) for gap in gaps) or evidence["p_adjusted"] >= LEVEL:
        return OPEN, NO_ERROR
    if gaps[0].is_beyond(margin):
        return NO, OVER if gaps[0].value > 0 else UNDER
    return NO, UNCALIBRATED  # the means are close and explain nothing


def deciding_gap(evidence: Mapping[str, Any], margin: float) -> CalibrationGap:
    """Return the gap that decides a mark of calibration: of all answers, or the largest.

    The gap of all answers decides if it is itself beyond the margin or undecided, and if all
    gaps are within it.
    """
    gaps = [CalibrationGap(*numbers) for numbers in evidence["gaps"]]
    mark, word = calibration_mark(evidence, margin)
    if mark == YES or (mark == NO and word != UNCALIBRATED):
        return gaps[0]
    if mark == OPEN and not gaps[0].is_within(margin):
        return gaps[0]
    if mark == NO:
        gaps = [gap for gap in gaps if gap.is_beyond(margin)]
    return max(gaps, key=lambda gap: max(-gap.lower, gap.upper))


def by_estimator(thresholds: pd.DataFrame) -> list[list[dict[Any, Any]]]:
    """Return the rows of THRESHOLDS of each pair and estimator, its seeds together."""
    key = ["earlier", "later", "train_dataset", "estimator"]
    # A missing threshold has no verdict, which is NaN in rows read from a printed table.
    verdicts = thresholds["verdict"].astype(object)
    filled = thresholds.assign(verdict=verdicts.where(verdicts.notna(), ""))
    return [rows.to_dict("records") for _, rows in filled.groupby(key, sort=False)]


def threshold_finding(seeds: Rows) -> Finding:
    """Return whether the thresholds of an estimator's seeds keep their precision."""
    first = seeds[0]
    selected = [row for row in seeds if row["verdict"]]
    needed = [row["labels_to_decide"] for row in selected if row["verdict"] == UNDECIDED]
    evidence: dict[str, Any] = {
        **{name: first[name] for name in ("target", "delta", "n_questions")},
        "n_seeds": len(seeds),
        "least_abstention": float(np.mean([row["least_abstention"] for row in seeds])),
        "labels_to_decide": float(max(needed, default=np.nan)),
        **{name: [row.get(name) for row in selected] for name in _BY_SEED},
    }
    if not selected:
        return Finding(THRESHOLD, NONE, NO_THRESHOLD, next=LABEL, evidence=evidence)
    verdict = rank_verdicts([row["verdict"] for row in selected])
    of_seeds = pd.DataFrame(selected)
    evidence["means"] = {name: float(of_seeds[name].mean()) for name in _AT_THRESHOLD}
    evidence["n_same"] = sum(row["verdict"] == verdict for row in selected)
    low, high = (getattr(of_seeds["later_precision"], end)() for end in ("min", "max"))
    if len(selected) == 1:
        low, high = (selected[0][f"later_precision_{end}"] for end in _ENDS)
    mark = _THRESHOLD_MARKS[verdict]
    if mark == YES and len(selected) < len(seeds):
        mark = OPEN  # a seed without a threshold promised nothing
    return Finding(
        THRESHOLD,
        mark,
        verdict,
        evidence["means"]["later_precision"],
        float(low),
        float(high),
        next=KEEP if mark == YES else LABEL,
        evidence=evidence,
    )


def threshold_in_slice(
    seeds: Rows,
    runs: Sequence[NDArray[np.float64]],
    ends: NDArray[np.int8],
    groups: NDArray[np.intp],
    n_compared: int,
) -> Finding:
    """Return whether the old thresholds keep their precision in a slice of the questions."""
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
        return Finding(THRESHOLD, NONE, FEW_QUESTIONS, evidence={"target": target})
    worst = rank_verdicts(verdicts)
    values, lower, upper = np.array(shares).T
    numbers = (float(values.mean()), float(lower.min()), float(upper.max()))
    evidence = {"target": target, "n_questions": len(right)}
    return Finding(THRESHOLD, _THRESHOLD_MARKS[worst], worst, *numbers, evidence=evidence)

"""Curves of confidence at one or two checkpoints: data of the page's charts and of figures."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ABSENT, AnswerArrays, RatedAnswers, drop_noise
from persistcal.evaluation.relabelling import curve_sizes, measure_label_curve
from persistcal.evaluation.reliability import reliability
from persistcal.evaluation.selective import risk_coverage
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.thresholds import (
    certified_candidates,
    labelled_questions,
    select_threshold,
)

CUTS = np.arange(51) / 50  # thresholds of a curve
LEAST_ANSWERED = 10  # a risk or a precision of fewer answers is not drawn
N_BINS = 20
LEAST_SUPPORT = 3.0  # below, a reliability curve shows the noise of one or two answers
OFTEN = 0.8  # share of the sheets that certify a threshold, to name a number of labels
TINY = 1e-9  # rounding error of a confidence that equals a threshold

Array = NDArray[np.float64]
Runs = Sequence[Array]  # confidences of each seed, (n_checkpoints, n_questions)
Labels = NDArray[np.int8]


def reliability_curve(answers: RatedAnswers) -> tuple[float, Array]:
    """Return SmoothECE, and rows of (confidence, accuracy, lower, upper), at one checkpoint.

    The curve stays within the confidences that were given, and ends where there are hardly any.
    """
    drawn = reliability(answers.runs, answers.right.astype(float), answers.groups)
    stated, step = np.concatenate(answers.runs), 0.51 / (len(drawn.confidence) - 1)
    clipped = np.clip(drawn.confidence, stated.min() - step, stated.max() + step)
    supported = (drawn.support >= LEAST_SUPPORT) & (clipped == drawn.confidence)
    columns = (drawn.confidence, drawn.accuracy, drawn.lower, drawn.upper)
    return drawn.smece, np.column_stack(columns)[supported]


def histogram(runs: Sequence[Array], mask: NDArray[np.bool_]) -> Array:
    """Return the number of answers in 20 equal bins of confidence, the mean over seeds.

    A bin begins with its lower end: .6, the confidence of 3 in 5 samples, is in [.6, .65).
    """
    stated = [np.minimum(run[mask] + TINY, 1) for run in runs]
    total = sum(np.histogram(run, bins=N_BINS, range=(0, 1))[0] for run in stated)
    return np.asarray(total) / len(runs)


def changes(earlier: Labels, later: Labels) -> dict[str, NDArray[np.bool_]]:
    """Return which questions that two checkpoints answered were kept, gained, lost or neither.

    >>> masks = changes(np.array([1, 0, 1, 0]), np.array([1, 1, 0, -1]))
    >>> {way: np.flatnonzero(mask).tolist() for way, mask in masks.items()}
    {'kept': [0], 'gained': [1], 'lost': [2], 'unknown': []}
    """
    both = (earlier != ABSENT) & (later != ABSENT)
    was, is_now = earlier == 1, later == 1
    return {
        "kept": both & was & is_now,
        "gained": both & ~was & is_now,
        "lost": both & was & ~is_now,
        "unknown": both & ~was & ~is_now,
    }


def shifts(runs: Runs, correct: Labels, earlier: int, later: int) -> dict[str, list[Array]]:
    """Return histograms of confidence before and after, of gained, lost and other questions.

    >>> correct = np.array([[0, 1, 1], [1, 0, 1]], np.int8)
    >>> run = np.array([[0.1, 0.9, 0.9], [0.9, 0.1, 0.9]])
    >>> {k: [int(h.argmax()) for h in pair] for k, pair in shifts([run], correct, 0, 1).items()}
    {'gained': [2, 18], 'lost': [18, 2], 'unchanged': [18, 18]}
    """
    kept, gained, lost, unknown = changes(correct[earlier], correct[later]).values()
    return {
        name: [histogram([run[k] for run in runs], mask) for k in (earlier, later)]
        for name, mask in {"gained": gained, "lost": lost, "unchanged": kept | unknown}.items()
    }


def mean_curve(answers: RatedAnswers) -> Array:
    """Return rows of (coverage, risk) at one checkpoint, means over seeds, from ten answers."""
    curves = [risk_coverage(run, answers.right) for run in answers.runs]
    risk = np.mean([risk for _, risk in curves], axis=0)
    return np.column_stack([curves[0][0], risk])[LEAST_ANSWERED - 1 :]


def threshold_curve(answers: RatedAnswers) -> Array:
    """Return rows of (threshold, precision, coverage) at one checkpoint, means over seeds.

    Precision is NaN above fewer than ten answers.
    """
    above = np.array([run >= CUTS[:, None] - TINY for run in answers.runs])
    answered, n_right = above.sum(axis=2), (above & answers.right).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(answered >= LEAST_ANSWERED, n_right / answered, np.nan)
    coverage = answered / max(1, len(answers.right))
    return np.column_stack([CUTS, precision.mean(axis=0), coverage.mean(axis=0)])


def _labelled(
    answers: AnswerArrays, runs: Runs, ends: Sequence[int], settings: EvaluationSettings
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Return the confidences and labels of the first of `ends` that select its threshold."""
    chosen = labelled_questions(answers, ends, seed=settings.seed)
    stated = [drop_noise(run[ends[0], chosen]) for run in runs]
    return stated, answers.correct[ends[0], chosen] == 1


def selected_thresholds(
    answers: AnswerArrays, runs: Runs, ends: tuple[int, int], settings: EvaluationSettings
) -> list[float]:
    """Return the thresholds that the first of two checkpoints selects, as `check_thresholds`.

    There is one for each seed that has a threshold.
    """
    stated, right = _labelled(answers, runs, ends, settings)
    selections = [
        select_threshold(run, right, precision=settings.precision, delta=settings.delta)
        for run in stated
    ]
    return [selection.threshold for selection in selections if selection]


def certified_ranges(
    answers: AnswerArrays, runs: Runs, k: int, settings: EvaluationSettings
) -> list[tuple[float, float]]:
    """Return the ranges of thresholds that a checkpoint's labels certify for every seed.

    By Learn then Test, see `select_threshold`: with a probability of 1 − delta, all thresholds
    of a seed reach the precision. A threshold has the result of the next tested confidence.
    If an answer is between the two, the tested confidence below must pass, too.
    """
    stated_by_seed, right = _labelled(answers, runs, [k], settings)
    reached = np.ones(len(CUTS), bool)
    for stated in stated_by_seed:
        tested, passed = certified_candidates(
            stated, right, precision=settings.precision, delta=settings.delta
        )
        places = np.searchsorted(tested, CUTS - TINY)
        n_below = np.searchsorted(np.sort(stated), [CUTS - TINY, np.append(tested, 2)[places]])
        is_between = n_below[0] < n_below[1]
        passes_below = np.concatenate([[True], passed])[places]
        reached &= np.append(passed, False)[places] & (passes_below | ~is_between)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], reached, [False]]).astype(int)))
    pairs = edges.reshape(-1, 2)
    return [(float(CUTS[start]), float(CUTS[stop - 1])) for start, stop in pairs]


def label_curve(
    answers: AnswerArrays, runs: Runs, k: int, settings: EvaluationSettings
) -> pd.DataFrame:
    """Return the table LABEL_CURVE of an estimator's first seed at one checkpoint."""
    [stated], right = _labelled(answers, runs[:1], [k], settings)
    return measure_label_curve(
        stated,
        right,
        precision=settings.precision,
        delta=settings.delta,
        n_labels=curve_sizes(len(right)),
        seed=settings.seed,
    )


def labels_that_certify(curve: pd.DataFrame) -> int | None:
    """Return the smallest measured number of labels that certifies a threshold in 80 %.

    >>> rows = {"n_labels": [30, 60, 120], "certified": [0.1, 0.82, 1.0]}
    >>> labels_that_certify(pd.DataFrame(rows))
    60
    """
    enough = curve.loc[curve["certified"] >= OFTEN, "n_labels"]
    return int(enough.min()) if len(enough) else None

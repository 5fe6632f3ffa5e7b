"""Few new labels for a later checkpoint: the answers to label, and the certified threshold.

All sheets are beginnings of one random order of the answers, so a larger sheet contains a
smaller one with its labels. `certify_threshold` tests thresholds with the labels of a sheet,
and `measure_label_curve` shows how many labels a threshold needs.

Each look at the labels can certify a wrong threshold. K planned looks share δ, with δ / K each.
The k-th unplanned look has δ / 2^(k + 1), so that all of them together have δ / 2 at most.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.proportions import hypergeometric_cdf
from persistcal.evaluation.thresholds import (
    answer_above,
    candidates,
    check_target,
    count_above,
    passing,
)
from persistcal.store.artifacts import LABEL_CURVE

N_LABELS = (30, 60, 120, 250, 500, 1000, 2000)  # of a label curve


class SheetLook(NamedTuple):
    """A look at the first labels of a sheet, and its error probability."""

    n_labels: int
    planned: bool
    level: float


def draw_order(n_answers: int, seed: int) -> NDArray[np.intp]:
    """Return the random order in which answers are labelled."""
    return np.random.default_rng(seed).permutation(n_answers)


def take_look(
    n_labels: int, planned: Sequence[int], earlier: Sequence[int], delta: float
) -> SheetLook:
    """Return the look at `n_labels` labels.

    `planned` are the numbers of labels of the planned looks, and `earlier` those of all looks
    so far. A repeated look has the level that it had.

    Looks at 30 and 60 labels were planned; the one at 45 is the first unplanned one:

    >>> take_look(60, [30, 60], [30, 45], 0.1).level, take_look(45, [30, 60], [], 0.1).level
    (0.05, 0.025)
    """
    if n_labels in planned:
        return SheetLook(n_labels, True, delta / len(planned))
    unplanned = list(dict.fromkeys([n for n in earlier if n not in planned] + [n_labels]))
    return SheetLook(n_labels, False, delta / 2 ** (unplanned.index(n_labels) + 2))


def certify_threshold(
    confidence: Array,
    position: NDArray[np.intp],
    correct: Mask,
    *,
    precision: float,
    delta: float = 0.1,
) -> float | None:
    """Return the lowest threshold with a precision that a random sample of labels certifies.

    If N answers of a finite set reach a threshold and their precision is below the target, then
    at least W = ⌊N (1 − precision)⌋ + 1 of them are wrong. Given that n of them are labelled, k
    of them wrong, the p-value is P[Hypergeometric(N, W, n) ≤ k]. Thresholds are tested as in
    `select_threshold`, which has the binomial distribution for an infinite set.

    Parameters
    ----------
    confidence : ndarray of shape (n_answers,)
        Confidences in all answers.
    position : ndarray of shape (n_labels,)
        Positions of the labelled answers, the beginning of `draw_order`.
    correct : ndarray of shape (n_labels,)
        Labels of these answers.
    precision : float
        Target, between 0 and 1.
    delta : float, default=0.1
        Largest probability, over random orders, that the certified threshold has a lower
        precision on all answers.

    Returns
    -------
    float or None
        None if the labels certify no threshold.

    Examples
    --------
    All 5 answers at .9 are labelled and right, so their precision is known; of the 5 at .2 one
    is labelled.

    >>> confidence = np.repeat([0.9, 0.2], 5)
    >>> certify_threshold(confidence, np.arange(6), np.ones(6, bool), precision=0.9)
    0.9
    """
    check_target(precision, delta)
    tested = candidates(confidence)
    n_answers, _ = count_above(tested, confidence, np.ones(len(confidence), bool))
    labels = np.asarray(correct, bool)
    return _certify(tested, n_answers, confidence[position], labels, precision, delta)


def _certify(
    tested: Array,
    n_answers: NDArray[np.intp],
    confidence: Array,
    correct: Mask,
    precision: float,
    delta: float,
) -> float | None:
    """Return the lowest of the `tested` thresholds that a sheet's labels certify."""
    n_labels, n_correct = count_above(tested, confidence, correct)
    n_wrong = np.floor(np.round(n_answers * (1 - precision), 9)).astype(int) + 1

    counts = np.stack([n_labels - n_correct, n_answers, n_wrong, n_labels], axis=1).tolist()
    certified = tested[passing(lambda i: hypergeometric_cdf(*counts[i]), n_answers, delta)]
    return float(certified[0]) if len(certified) else None


def curve_sizes(n_answers: int) -> list[int]:
    """Return the sizes of sheets for a curve, the last with all answers."""
    return [*(size for size in N_LABELS if size < n_answers), n_answers]


def measure_label_curve(
    confidence: Array,
    correct: Mask,
    *,
    precision: float,
    delta: float = 0.1,
    n_labels: Sequence[int],
    n_sheets: int = 50,
    seed: int = 17,
    step: Callable[[str], None] = lambda _: None,
) -> pd.DataFrame:
    """Measure which threshold a sheet of each size certifies, if all answers are labelled.

    `n_labels` are sizes of sheets, such as `curve_sizes(len(correct))`. Sheet i of each size
    begins the order of the seed `seed` + i. `step` receives a name after each size.

    The result is the table LABEL_CURVE. `certified` is the share of sheets that certify a
    threshold. `threshold`, `precision` and `coverage` are medians over these sheets, of all
    answers at or above the threshold. `below_target` is the share of sheets that certify a
    threshold with a lower precision than the target.
    """
    check_target(precision, delta)
    tested = candidates(confidence)
    n_answers, _ = count_above(tested, confidence, np.ones(len(confidence), bool))
    n_all = len(confidence)
    longest = max((size for size in n_labels if size < n_all), default=0)
    orders = [draw_order(n_all, seed + i)[:longest].copy() for i in range(n_sheets)]
    above = cache(lambda threshold: answer_above(threshold, confidence, correct))
    rows = []
    for size in n_labels:
        selections = []
        # Sheets with all answers are equal, so one of them is enough.
        drawn = orders if size < n_all else [np.arange(n_all)]
        for order in drawn:
            labelled = order[:size]
            certified = _certify(
                tested, n_answers, confidence[labelled], correct[labelled], precision, delta
            )
            if certified is not None:
                selections.append(above(certified))
        row = {"n_labels": size, "n_sheets": n_sheets, "target": precision}
        for name in ("threshold", "precision", "coverage"):
            values = [getattr(selection, name) for selection in selections]
            row[name] = np.median(values) if selections else np.nan
        n_below = sum(s.n_correct < precision * s.n_answered for s in selections)
        row |= {"certified": len(selections) / len(drawn), "below_target": n_below / len(drawn)}
        rows.append(row)
        step(f"{size} labels")
    return pd.DataFrame(rows, columns=LABEL_CURVE.schema.names)

"""Gaps of calibration: mean confidence minus accuracy, in all answers and by confidence.

Errors can cancel in a mean. Up to five equal groups of answers by confidence therefore have
separate gaps. Answers with the same confidence stay together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.proportions import exact_interval
from persistcal.evaluation.samples import LEVEL

N_GROUPS = 5


class CalibrationGap(NamedTuple):
    """Mean confidence and accuracy of answers, and an interval of the difference."""

    confidence: float
    accuracy: float
    lower: float
    upper: float

    @property
    def value(self) -> float:
        """The mean confidence minus the accuracy."""
        return self.confidence - self.accuracy

    def is_within(self, margin: float) -> bool:
        """Return whether the gap is surely at most a margin, in either direction."""
        return -margin <= self.lower and self.upper <= margin

    def is_beyond(self, margin: float) -> bool:
        """Return whether the gap is surely larger than a margin."""
        return self.lower > margin or self.upper < -margin


def measure_gaps(
    runs: Sequence[Array], correct: Mask, groups: NDArray[np.intp], *, n_compared: int = 1
) -> list[CalibrationGap]:
    """Return the gap of all answers, then of each group by confidence, the lowest first.

    The 95 % intervals are simultaneous, for all gaps and `n_compared` estimators (Bonferroni).

    Parameters
    ----------
    runs : sequence of ndarray of shape (n_answers,)
        Confidences of each seed; gaps are means over seeds.
    correct, groups : ndarray of shape (n_answers,)
        Answers of one group are right or wrong together.
    n_compared : int, default=1
        Estimators with simultaneous intervals.

    Notes
    -----
    The interval is Clopper–Pearson's of the accuracy, for a number of answers with the variance
    of the mean error. The number is never larger than the real one. It is smaller if answers of
    a group err together.

    Examples
    --------
    Confidences of .9 and .1 are exact: nine of ten, and one of ten answers are right.

    >>> right = np.arange(20) % 10 == 0
    >>> right[:10] ^= True
    >>> found = measure_gaps([np.repeat([0.9, 0.1], 10)], right, np.arange(20))
    >>> [(round(gap.confidence, 3), round(gap.accuracy, 3)) for gap in found]
    [(0.5, 0.5), (0.1, 0.1), (0.9, 0.9)]
    """
    confidence = np.concatenate(runs)
    right = np.tile(correct.astype(float), len(runs))
    answer = np.tile(np.arange(len(correct)), len(runs))
    part = _by_confidence(confidence)
    chosen = [np.ones(len(part), bool), *(part == p for p in np.unique(part))]
    if len(chosen) == 2:
        chosen.pop()  # the only group is all answers
    level = 1 - LEVEL / len(chosen) / n_compared
    return [_gap(confidence[c], right[c], answer[c], groups, level) for c in chosen]


def _by_confidence(confidence: Array) -> NDArray[np.intp]:
    """Return the number of each answer's group; each has at least half of an equal share."""
    _, index, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    reached, n = np.cumsum(counts), len(confidence)
    first, done = [0], 0  # first value of each group, and answers in groups so far
    while n_left := round(N_GROUPS * (n - done) / n):
        last = int(np.searchsorted(reached, done + (n - done) / n_left))
        done = int(reached[last])
        first.append(last + 1)
    return np.searchsorted(first[1:-1], index, side="right")


def measure_share(
    right: Mask, groups: NDArray[np.intp], level: float
) -> tuple[float, float, float]:
    """Return the share of right answers, and its interval by groups of similar answers.

    >>> [round(end, 3) for end in measure_share(np.arange(10) < 9, np.arange(10), 0.95)]
    [0.9, 0.555, 0.997]
    """
    said = np.zeros(len(right))
    gap = _gap(said, right.astype(float), np.arange(len(right)), groups, level)
    return gap.accuracy, -gap.upper, -gap.lower


def _gap(
    confidence: Array, right: Array, answer: NDArray, groups: NDArray, level: float
) -> CalibrationGap:
    said, share, n = float(confidence.mean()), float(right.mean()), len(np.unique(answer))
    errors = confidence - right

    def variance(of: NDArray) -> float:
        """Return the variance of the mean error if answers of a cluster are not independent."""
        _, cluster = np.unique(of, return_inverse=True)
        return (
            float((np.bincount(cluster, errors - errors.mean()) ** 2).sum()) / len(errors) ** 2
        )

    alone = variance(answer)
    counted = min(n, share * (1 - share) / alone) if alone > 0 and 0 < share < 1 else float(n)
    if alone > 0:
        counted /= max(1.0, variance(groups[answer]) / alone)
    low, high = exact_interval(share * counted, counted, level=level)
    return CalibrationGap(said, share, said - high, said - low)

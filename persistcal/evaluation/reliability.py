"""Calibration: reliability diagrams, the noise floor of SmoothECE, a test, and gaps.

A reliability diagram shows accuracy as a smooth function of confidence, with a band.
The smoothing kernel is SmoothECE's, with a bandwidth equal to the SmoothECE, as in `relplot`.

SmoothECE of a finite sample is above 0 even if the estimator is calibrated. The noise floor is
its mean over labels that are drawn from the confidences themselves: the value that a perfectly
calibrated estimator with these confidences would have at this number of questions. The p-value
of calibration is the share of draws that reach the observed value.

A gap is the mean confidence minus the accuracy. Errors can cancel in a mean over all answers.
Up to five equal groups of answers by confidence therefore have separate gaps. Answers with the
same confidence stay together.
"""

import hashlib
from collections.abc import Iterator, Sequence
from operator import methodcaller
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.evaluate import count_once, defining, metrics_under
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.predictions import ABSENT, Array, Mask
from persistcal.evaluation.proportions import Z, exact_interval
from persistcal.evaluation.samples import LEVEL
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.smooth_ece import (
    COARSEST,
    N_BANDWIDTHS,
    Labellings,
    mesh,
    n_grid_points,
    smooth_ece,
    smoothing_at,
    split,
)
from persistcal.evaluation.weighted import in_threads

N_POINTS = 51  # on the curve, evenly spread over [0, 1]
N_DRAWS = 500
LEAST, BLOCK = 20, 100  # draws at a time; fewer of more than 50,000 groups, to save memory
MOST_NUMBERS = 5_000_000  # of a block
N_GROUPS = 5  # by confidence
METRIC = "smece"
FULL = MetricKey("odds", "full", METRIC)
_DRAWN: dict[bytes, Array] = {}  # draws of SmoothECE by content, for the next test of the same
FLOOR = ["noise_floor", "p_calibrated"]


class Reliability(NamedTuple):
    """A reliability diagram, at the points `confidence`.

    `accuracy` is the smoothed share of correct answers over all runs, with a pointwise 95 %
    interval over questions. `support` is the smoothed number of answers of a run: an answer has
    weight 1 at its confidence, and less with distance. `smece` is the mean over the runs.
    """

    smece: float
    confidence: Array
    accuracy: Array
    lower: Array
    upper: Array
    support: Array


def reliability(runs: Sequence[Array], correct: Array, groups: NDArray[np.intp]) -> Reliability:
    """Draw the reliability of an estimator's answers at one checkpoint.

    The bandwidth is at least 11/1024, so that the curve of a well calibrated estimator is not
    noise. The band takes it as given. An accuracy is a ratio of two sums over answers, and the
    variance is that of its linear approximation.

    `runs` are the confidences of each seed, (n_answers,). Answers of one of the `groups`,
    (n_answers,), are right or wrong together.
    """
    smece = float(np.mean([smooth_ece(run, correct) for run in runs]))
    k = int(np.clip(np.ceil(smece * N_BANDWIDTHS), COARSEST, N_BANDWIDTHS))
    points = mesh(k)
    points = points[np.linspace(0, len(points) - 1, N_POINTS).round().astype(int)]
    on_grid = [split(run, n_grid_points(k)) for run in runs]
    rows = []
    for kernel in smoothing_at(points, k).toarray():
        weight = sum(
            kernel[left] * (1 - share) + kernel[left + 1] * share for left, share in on_grid
        )
        mass = weight.sum()
        with np.errstate(invalid="ignore"):  # far from all answers
            accuracy = weight @ correct / mass
            by_group = np.bincount(groups, weight * (correct - accuracy))
            rows.append((accuracy, Z * np.sqrt(by_group @ by_group) / mass, mass))
    accuracies, reach, masses = np.array(rows).T
    lower, upper = np.clip([accuracies - reach, accuracies + reach], 0, 1)
    height = N_BANDWIDTHS / k / np.sqrt(2 * np.pi)
    return Reliability(smece, points, accuracies, lower, upper, masses / height / len(runs))


class CalibrationTest(NamedTuple):
    """Noise floor of a SmoothECE, and the p-value of the hypothesis of calibration."""

    noise_floor: float
    p_calibrated: float


class CheckpointCalibration(NamedTuple):
    """Calibration at one checkpoint.

    `value` is SmoothECE.
    """

    value: float
    noise_floor: float
    p_calibrated: float
    confidence: float
    accuracy: float


def compare_with_floor(value: float, drawn: Array) -> CalibrationTest:
    """Compare a SmoothECE with values of a calibrated estimator, (n_draws,).

    The p-value counts the observed value among the draws, so it is never 0. Both are NaN if
    the value or a draw is undefined.

    >>> compare_with_floor(0.3, np.array([0.1, 0.2, 0.3, 0.4]))  # (1 + 2) / (1 + 4)
    CalibrationTest(noise_floor=0.25, p_calibrated=0.6)
    """
    if np.isnan(value) or np.isnan(drawn).any():
        return CalibrationTest(np.nan, np.nan)
    n_larger = int(np.sum(np.round(drawn, 12) >= np.round(value, 12)))
    return CalibrationTest(float(drawn.mean()), (1 + n_larger) / (1 + len(drawn)))


def checkpoint_calibration(
    runs: Sequence[Array],
    correct: Mask,
    groups: NDArray[np.intp],
    *,
    seed: int,
    n_draws: int = N_DRAWS,
) -> CheckpointCalibration:
    """Test the calibration of an estimator's confidences in the answers of one checkpoint.

    `runs` are the confidences of each seed, (n_answers,). Values and draws are means over
    seeds. Answers of one of the `groups`, (n_answers,), are right or wrong together.
    """
    keys = [_key(run, groups, n_draws, seed) for run in runs]
    if not set(keys) <= set(_DRAWN):
        labellings = list(map(Labellings, runs))
        blocks = [
            [of.draw(uniform) for of in labellings]
            for uniform in _uniforms(groups, n_draws, seed)
        ]
        _DRAWN.update(zip(keys, np.concatenate(blocks, axis=1), strict=True))
    value = float(np.mean([smooth_ece(run, correct) for run in runs]))
    tested = compare_with_floor(value, np.mean([_DRAWN[key] for key in keys], axis=0))
    return CheckpointCalibration(value, *tested, float(np.mean(runs)), float(correct.mean()))


def _key(confidence: Array, groups: NDArray[np.intp], *of_draws: int) -> bytes:
    content = np.ascontiguousarray(confidence).tobytes() + groups.tobytes()
    return hashlib.sha256(content + repr(of_draws).encode()).digest()


def _uniforms(groups: NDArray[np.intp], n_draws: int, seed: int) -> Iterator[Array]:
    """Draw numbers from [0, 1) for questions, a block of draws at a time.

    Questions of a group have the same numbers. A block is valid until the next one is drawn.
    """
    rng = np.random.default_rng(seed)
    _, group_number = np.unique(groups, return_inverse=True)
    n_groups = int(group_number.max(initial=-1)) + 1
    is_alone = np.array_equal(group_number, np.arange(n_groups))
    most = max(LEAST, MOST_NUMBERS // max(1, n_groups))
    block = min(BLOCK, most)
    sizes = [min(block, n_draws - start) for start in range(0, n_draws, block)]
    reused = np.empty((n_groups, block))  # large memory that is new costs as much as the draws
    for first in range(0, len(sizes), most // block):
        together = sizes[first : first + most // block]
        if together == [block]:
            drawn = rng.random(out=reused)
        else:
            drawn = np.hstack([rng.random((n_groups, size)) for size in together])
        yield drawn if is_alone else drawn[group_number]


def noise_floors(
    data: Aligned, settings: EvaluationSettings, *, n_draws: int = N_DRAWS
) -> pd.DataFrame:
    """Return the noise floor and the p-value of calibration for each estimator's SmoothECE.

    On contrast sets the labels are drawn from the conditioned confidences. Value and draws are
    means over seeds and over checkpoints or pairs. A draw gives a question the same random
    number everywhere: answers of one question are right or wrong together as often as the
    confidences allow, so the test errs towards calibration. So does a group of questions.
    """
    answers = data.answers
    observed = metrics_under(count_once, data, settings.conditionings, metrics=[METRIC])
    runs_of_all = [*answers.confidence.values()]
    # in the order of the questions, so that their numbers need no copy
    answered = [np.flatnonzero(labels != ABSENT) for labels in answers.correct]
    # the questions of each checkpoint or pair, with each run's confidences in them
    parts = {
        FULL: [
            (questions, [Labellings(run[k, questions]) for run in runs_of_all])
            for k, questions in enumerate(answered)
        ]
    }
    defined = defining(METRIC, data.kept)
    for conditioning in settings.conditionings if defined else ():
        rated = data.rated(conditioning)
        parts[MetricKey(conditioning, "contrast", METRIC)] = [
            (rated[i].pair.changed, [Labellings(run.earlier) for run in rated[i].runs])
            for i in defined
        ]
    shape = len(runs_of_all), n_draws
    drawn = {key: [np.empty(shape) for _ in asked] for key, asked in parts.items()}
    start = 0
    for uniform in _uniforms(answers.groups, n_draws, settings.seed):
        columns = slice(start, start + uniform.shape[1])
        for key, asked in parts.items():
            for (questions, runs), of_part in zip(asked, drawn[key], strict=True):
                is_all = len(questions) == len(uniform)
                numbers = uniform if is_all else uniform[questions]
                draw = methodcaller("draw", numbers)
                of_part[:, columns] = in_threads(draw, runs, size=numbers.size)
        start = columns.stop
    for (questions, runs), of_part in zip(*(of[FULL] for of in (parts, drawn)), strict=True):
        if len(questions) == len(answers.questions):  # as a checkpoint's own test draws them
            for run, of_run in zip(runs, of_part, strict=True):
                _DRAWN[_key(run.confidence, answers.groups, n_draws, settings.seed)] = of_run
    rows = []
    for key, of_parts in drawn.items():
        by_run = np.mean(of_parts, axis=0)
        for member, series in answers.rows.items():
            value = float(observed[key][series, 0].mean())
            tested = compare_with_floor(value, by_run[series].mean(axis=0))
            rows.append((*member, *key, *tested))
    names = ["train_dataset", "estimator", "conditioning", "scope", "metric", *FLOOR]
    return pd.DataFrame(rows, columns=names)


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
    masks = [np.ones(len(part), bool), *(part == p for p in np.unique(part))]
    if len(masks) == 2:
        masks.pop()  # the only group is all answers
    level = 1 - LEVEL / len(masks) / n_compared
    return [_gap(confidence[c], right[c], answer[c], groups, level) for c in masks]


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
    zeros = np.zeros(len(right))
    gap = _gap(zeros, right.astype(float), np.arange(len(right)), groups, level)
    return gap.accuracy, -gap.upper, -gap.lower


def _gap(
    confidence: Array, right: Array, answer: NDArray, groups: NDArray, level: float
) -> CalibrationGap:
    mean, share, n = float(confidence.mean()), float(right.mean()), len(np.unique(answer))
    errors = confidence - right

    def variance(of: NDArray) -> float:
        """Return the variance of the mean error if answers of a cluster are not independent."""
        _, cluster = np.unique(of, return_inverse=True)
        return (
            float((np.bincount(cluster, errors - errors.mean()) ** 2).sum()) / len(errors) ** 2
        )

    single = variance(answer)
    counted = min(n, share * (1 - share) / single) if single > 0 and 0 < share < 1 else float(n)
    if single > 0:
        counted /= max(1.0, variance(groups[answer]) / single)
    low, high = exact_interval(share * counted, counted, level=level)
    return CalibrationGap(mean, share, mean - high, mean - low)

r"""Intervals of all metrics, and tests of estimators against each other, all at once.

All pairs of estimators are compared at once by the bootstrap of the maximum. Replicates
:math:`b` of the difference :math:`d_{ij}` of two estimators have the standard deviation
:math:`s_{ij}`. The critical value is the 95 % quantile of the largest deviation,

.. math:: c = q_{0.95}\Bigl(\max_{i<j} |d^b_{ij} - \bar d_{ij}| / s_{ij}\Bigr),

and the intervals :math:`d_{ij} \pm c\, s_{ij}` contain all true differences together in 95 % of
studies. The best estimator can therefore be chosen from the same data. The maximum takes into
account how strongly estimators agree [1]_. An estimator is in the set of the best unless
another one is above it [2]_.

With few questions :math:`s_{ij}` itself is uncertain, which matters most for the largest of
many deviations. The critical value is therefore the quantile of Student's distribution that
corresponds to the bootstrap's. `docs/validation.md` has the simulated level and power.

References
----------
.. [1] Romano and Wolf, "Exact and Approximate Stepdown Methods for Multiple Hypothesis
   Testing", Journal of the American Statistical Association 2005.
.. [2] Hsu, "Multiple Comparisons: Theory and Methods", Chapman & Hall 1996.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from persistcal.evaluation.metrics.registry import METRICS
from persistcal.evaluation.predictions import Array, Mask, PredictionsError
from persistcal.evaluation.proportions import DECIMALS, compare_replicates, holm
from persistcal.evaluation.reliability import FLOOR
from persistcal.evaluation.replicates import KEY, MetricSamples, Replicates
from persistcal.evaluation.samples import LEVEL, BySeed, recipe_interval
from persistcal.evaluation.settings import Member
from persistcal.store.artifacts import INTERVALS, SIGNIFICANCE

log = logging.getLogger(__name__)

TINY = 1e-6  # smaller differences are rounding
DEVIATION_DECIMALS = 9  # equal deviations are equal for any order of summation


def intervals(replicates: Replicates) -> pd.DataFrame:
    """Return 95 % intervals of each metric and estimator, over questions and over seeds, too.

    The result has the columns of the table INTERVALS but for model and dataset. The first
    interval is a percentile interval over questions, `recipe_interval` gives the second. Both
    are NaN if the metric is undefined or has no valid interval, if it does not vary (a constant
    confidence has a Δ₀ᵇ of exactly 0), or if a pair gains or loses too few questions.
    `noise_floors` has the columns about calibration, which are NaN here.
    """
    rows = []
    for key, measured in replicates.items():
        among = METRICS[key.metric].bounds
        for member, sample in measured.samples.items():
            ends = np.quantile(sample.draws, [0.025, 0.975])
            has_width = np.round(ends[1] - ends[0], DECIMALS) > 0
            low, high = np.where(has_width, ends, np.nan)
            seeds = [sample.by_seed], sample.noise
            recipe = recipe_interval(sample.value, sample.draws, *seeds, among)
            counts = measured.fewest or (None, None)
            rows.append((*member, *key, sample.value, low, high, *recipe[:3], *counts))
    columns = [name for name in INTERVALS.but("model", "dataset") if name not in FLOOR]
    table = pd.DataFrame(rows, columns=columns).assign(**dict.fromkeys(FLOOR, np.nan))
    return table.astype({"improvement": "Int64", "regression": "Int64"})


def compare_blocks(
    replicates: Replicates, blocks: Mapping[str, Sequence[str | Member]]
) -> pd.DataFrame:
    """Test, metric by metric, the best estimator of each block against the others.

    `blocks` names the estimators that are compared with each other; the estimator's name is
    enough if it has only one training dataset. The result has the columns of the table
    SIGNIFICANCE but for model and dataset; a row per block, metric and estimator that is not
    the best (the first of several best). A metric that is undefined for the whole block has no
    rows, and a warning; the columns of an undefined `other` are NaN.

    With d = best − other, or other − best where lower is better, `difference` is the observed
    d, and `lower_5pct`, `lower_2_5pct` and `upper_97_5pct` are quantiles of d over replicates.
    `significant` is whether `lower_5pct` is above 0: the paper's one-sided test, for the marks
    in its tables; missing without replicates. `p_value` is two-sided, and `p_holm` adjusts it
    for the rows of the same block, conditioning, scope and metric. These columns do not take
    into account that the best was chosen from the same data. The others do, see `compare_all`:
    the simultaneous interval of d, `p_adjusted`, and `in_best_set`, whether no estimator of the
    block is above `other`; it is missing without a test. `n_seeds` and the columns that begin
    with `seeds` include the variation between training seeds, see `recipe_interval`.
    """
    rows = []
    undefined: dict[tuple[str, str], list[str]] = {}  # headings of metrics
    for block, members in blocks.items():
        for key, measured in replicates.items():
            available = list(measured.samples)
            names = [_member(name, available, block) for name in members]
            index = [available.index(name) for name in names]
            samples = [measured.samples[name] for name in names]
            sign = -1 if METRICS[key.metric].lower_is_better else 1
            # rounded, so that equal values are equal for any order of summation
            data, drawn, claimed = (
                np.round(sign * values[index], DECIMALS)
                for values in (measured.values, measured.stratified, measured.draws)
            )
            if np.isnan(data).all():
                undefined.setdefault((block, key.scope), []).append(METRICS[key.metric].heading)
                continue
            best = int(np.nanargmax(data))
            others = [i for i in range(len(names)) if i != best]
            sides = [
                {seed: sign * value for seed, value in sample.by_seed.items()}
                for sample in samples
            ]
            tests = [
                _compare(
                    data[best] - data[i],
                    drawn[best] - drawn[i],
                    claimed[best] - claimed[i],
                    [sides[best], sides[i]],
                    max(samples[best].noise, samples[i].noise),
                )
                for i in others
            ]
            together = compare_estimators(measured, index, key.metric)
            near = together.near(best)
            adjusted = holm([test["p_value"] for test in tests])
            rows += [
                {
                    "train_dataset": names[i][0],
                    "block": block,
                    **dict(zip(KEY, key, strict=True)),
                    "best": names[best][1],
                    "other": names[i][1],
                    **test,
                    "p_holm": p_holm,
                    "simultaneous_lower": together.lower[best, i],
                    "simultaneous_upper": together.upper[best, i],
                    "p_adjusted": together.p_adjusted[best, i],
                    "in_best_set": near[i],
                }
                for i, test, p_holm in zip(others, tests, adjusted, strict=True)
            ]
    for (block, scope), headings in undefined.items():
        log.warning(
            "%.80s: no test of %s on %s, undefined for all of these estimators",
            block,
            ", ".join(dict.fromkeys(headings)),
            "contrast sets" if scope == "contrast" else "all questions",
        )
    table = pd.DataFrame(rows, columns=SIGNIFICANCE.but("model", "dataset"))
    return table.astype({"significant": "boolean", "in_best_set": "boolean"})


def _member(name: str | Member, estimators: Sequence[Member], block: str) -> Member:
    matches = [e for e in estimators if name in (e, e[1])]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(
        f"{estimator} (trained on {dataset})" for dataset, estimator in estimators
    )
    problem = "is not in the predictions" if not matches else "has several training datasets"
    raise PredictionsError(
        f"Estimator {name} of block {block!r} {problem}, which contain: {listed}."
    )


def _compare(
    difference: float, stratified: Array, claimed: Array, sides: Sequence[BySeed], noise: float
) -> dict[str, Any]:
    """Return the columns of SIGNIFICANCE about one difference and its replicates."""
    lower = np.nan
    if len(stratified):  # NaN if a replicate is
        lower = float(np.quantile(stratified, 0.05))
    low, high = np.quantile(claimed, [0.025, 0.975])
    recipe = recipe_interval(difference, claimed, sides, noise)
    return {
        "difference": difference,
        "lower_5pct": lower,
        "significant": None if np.isnan(lower) else lower > 0,
        "lower_2_5pct": low,
        "upper_97_5pct": high,
        "p_value": compare_replicates(0.0, difference, claimed).p_value,
        "n_seeds": recipe.n_seeds,
        "seeds_lower_2_5pct": recipe.lower,
        "seeds_upper_97_5pct": recipe.upper,
        "seeds_p_value": recipe.p_value,
    }


@dataclass
class Simultaneous:
    """Comparison of all pairs of estimators: arrays of shape (n_estimators, n_estimators).

    `difference` is positive if the first estimator is better. `error` and `p_adjusted` are NaN
    for pairs without a test: an estimator is undefined, or no replicate changes the difference.
    `lower` and `upper` are ends of the simultaneous intervals, which reach `critical` errors.
    `above` is whether the first estimator is better by an interval that excludes 0, and `tied`
    whether two are equal on the data and on every replicate. `in_best_set`, (n_estimators,), is
    whether no other estimator is above; an estimator without a test is not excluded.
    """

    difference: Array
    error: Array
    critical: float
    p_adjusted: Array

    def __post_init__(self) -> None:
        """Conclude which estimators are above others, and which can be the best."""
        self.lower = self.difference - self.critical * self.error
        self.upper = self.difference + self.critical * self.error
        self.above = (self.p_adjusted <= LEVEL) & (self.difference > 0)
        self.tied = np.isnan(self.error) & (np.abs(self.difference) <= TINY)
        self.in_best_set = np.asarray(~self.above.any(axis=0))

    def near(self, best: int) -> list[bool | None]:
        """Return for each estimator whether it is in the set of the best.

        None if it has no test against the estimator at position `best`.
        """
        has_test = ~np.isnan(self.error[best]) | self.tied[best]
        return [bool(n) if t else None for n, t in zip(self.in_best_set, has_test, strict=True)]


def compare_estimators(
    samples: MetricSamples, index: Sequence[int], metric: str
) -> Simultaneous:
    """Compare the estimators at some positions on a metric, see `compare_all`."""
    sign = -1 if METRICS[metric].lower_is_better else 1
    # replicates can differ for estimators that agree on every question
    probes = samples.probes[index]
    same = [np.abs(probes - values).max(axis=1) <= TINY for values in probes]
    return compare_all(
        sign * samples.values[index],
        sign * samples.draws[index],
        samples.n_effective,
        np.array(same),
    )


def compare_all(
    values: Array, drawn: Array, n_questions: float = np.inf, same: Mask | None = None
) -> Simultaneous:
    """Compare all pairs of estimators on one metric.

    Parameters
    ----------
    values : ndarray of shape (n_estimators,)
        The metric on the data, larger for better estimators; NaN if undefined.
    drawn : ndarray of shape (n_estimators, n_replicates)
        The metric on the same bootstrap replicates; a row with NaN is undefined.
    n_questions : float, default=inf
        Number of questions that the metric rests on, see `effective_questions`. Student's
        distribution has one degree of freedom less.
    same : bool ndarray of shape (n_estimators, n_estimators), optional
        Pairs that are equal on any questions, and have no test.

    Returns
    -------
    Simultaneous
        `p_adjusted` is (1 + number of replicates with a largest deviation over all pairs of at
        least the observed one) / (1 + n_replicates): at most 5 % if the interval excludes 0,
        and only then.

    Examples
    --------
    Replicates of the difference are 0.5 or 0.3, one standard deviation from their mean. The
    observed difference is nearly four standard deviations from 0:

    >>> drawn = np.array([[0.5, 0.3] * 20, [0.0] * 40])
    >>> found = compare_all(np.array([0.4, 0.0]), drawn)
    >>> round(float(found.p_adjusted[0, 1]), 3)  # 1 / 41
    0.024
    >>> found.in_best_set.tolist()
    [True, False]
    """
    values = np.where(np.isnan(drawn).any(axis=1), np.nan, values)
    n_estimators, n_replicates = drawn.shape
    error = np.full((n_estimators, n_estimators), np.nan)
    largest = np.zeros(n_replicates)
    for first in range(n_estimators - 1):
        gaps = drawn[first] - drawn[first + 1 :]
        gaps -= gaps.mean(axis=1, keepdims=True)
        spread = gaps.std(axis=1, ddof=min(1, n_replicates - 1))
        is_tested = spread > TINY
        if same is not None:
            is_tested &= ~same[first, first + 1 :]
        spread = np.where(is_tested, spread, np.nan)
        error[first, first + 1 :] = error[first + 1 :, first] = spread
        deviation = np.abs(gaps[is_tested]) / spread[is_tested, None]
        largest = np.maximum(largest, deviation.max(axis=0, initial=0))
    freedom = max(1.0, n_questions - 1)
    scale = np.sqrt(1 + 1 / freedom)  # replicates vary less than samples
    largest = np.sort(-scale * stdtrit(freedom, ndtr(-largest))).round(DEVIATION_DECIMALS)
    difference = values[:, None] - values
    # the largest number of replicates above the critical value with a p-value of 5 %
    rank = int(LEVEL * (1 + n_replicates) + 1e-9)
    critical = float(largest[-rank]) if rank else np.inf
    observed = (np.abs(difference) / error).round(DEVIATION_DECIMALS)
    exceeding = n_replicates - np.searchsorted(largest, observed)
    p_adjusted = np.where(np.isnan(error), np.nan, (1 + exceeding) / (1 + n_replicates))
    return Simultaneous(difference, error, critical, p_adjusted)

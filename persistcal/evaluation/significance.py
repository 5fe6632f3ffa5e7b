r"""Intervals and tests of estimators, over questions and over training seeds.

A bootstrap of questions does not vary the trained adapters. Another training run gives other
adapters, so the variance of a mean over S seeds has two parts,

.. math:: \hat V = \hat V_\text{questions} + s^2 / S,

the bootstrap variance and the variance :math:`s^2` between seeds on the same questions, which
has S − 1 degrees of freedom. The interval is Student's, with Satterthwaite's degrees of freedom
for the sum: nearly 2 for three seeds that differ much. Differences between seeds on single
questions would count in both parts, so the excess variance between seeds on replicates is
subtracted from the second part. For two estimators it is the larger excess, which is at most
the excess of their difference unless equal seeds make nearly the same mistakes. Near the end of
a metric's range, seeds differ on one side of the mean only, so the interval of a single metric
with `bounds` is symmetric in log-odds.

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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from persistcal.evaluation.blocks import Member
from persistcal.evaluation.distributions import (
    normal_quantile,
    normal_tail,
    student_quantile,
    student_tail,
)
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import Array, Mask, PredictionsError
from persistcal.evaluation.proportions import DECIMALS, compare_replicates, holm, two_sided_p
from persistcal.evaluation.reliability import FLOOR
from persistcal.evaluation.replicates import KEY, Replicates
from persistcal.store.artifacts import INTERVALS, SIGNIFICANCE

log = logging.getLogger(__name__)

BySeed = Mapping[int, float]  # the metric of each seed on the data
LEVEL = 0.05
TINY = 1e-6  # smaller differences are rounding
DEVIATION_DECIMALS = 9  # equal deviations are equal for any order of summation


class RecipeInterval(NamedTuple):
    """A 95 % interval over seeds and questions, and the two-sided p-value of 0.

    `n_seeds` is the smallest number of seeds of a trained estimator, 0 if neither is trained.
    All else is NaN for a single seed, which contains no information about others, and if the
    variance is 0.
    """

    n_seeds: int
    lower: float
    upper: float
    p_value: float


def recipe_interval(
    value: float,
    replicates: Array,
    sides: Sequence[BySeed],
    noise: float = 0.0,
    bounds: tuple[float, float] | None = None,
) -> RecipeInterval:
    """Return the interval of a metric, or of the difference of two.

    Parameters
    ----------
    value : float
        Mean over seeds, or the first such mean minus the second.
    replicates : ndarray of shape (n_replicates,)
        The same on bootstrap replicates.
    sides : sequence of mapping of int to float
        The metric by seed, for one estimator or for two. Equal seeds are paired, because they
        start from equal adapters. If no estimator depends on a seed (each has only seed 0), the
        replicates alone determine interval and p-value.
    noise : float, default=0
        Variance between seeds that comes from the questions.
    bounds : (float, float), optional
        The ends of the metric's range; not for a difference.

    References
    ----------
    .. [1] Satterthwaite, "An Approximate Distribution of Estimates of Variance
       Components", Biometrics Bulletin 1946.

    Examples
    --------
    Three seeds, s² = 0.01, on questions that do not matter: 0.5 ± 4.303 √(0.01 / 3)

    >>> interval = recipe_interval(0.5, np.full(9, 0.5), [{17: 0.4, 18: 0.5, 19: 0.6}])
    >>> interval.n_seeds, round(float(interval.lower), 3), round(float(interval.upper), 3)
    (3, 0.252, 0.748)
    """
    trained = [side for side in sides if set(side) != {0}]  # only seed 0: without training
    n_seeds = min(map(len, trained), default=0)
    if np.isnan(value) or np.isnan(replicates).any() or n_seeds == 1:
        return RecipeInterval(n_seeds, np.nan, np.nan, np.nan)
    if not trained:
        low, high = np.quantile(replicates, [0.025, 0.975]).tolist()
        if round(high - low, DECIMALS) == 0:  # zero width: no interval
            low = high = np.nan
        return RecipeInterval(0, low, high, two_sided_p(replicates))
    runs = [np.array(list(side.values())) for side in trained]
    if len(trained) == 2 and trained[0].keys() == trained[1].keys():
        runs = [np.array([values - trained[1][seed] for seed, values in trained[0].items()])]
    parts = np.array([run.var(ddof=1) / len(run) for run in runs])
    freedom = np.array([len(run) - 1 for run in runs])
    noise_variance = noise / min(map(len, runs))
    variance = replicates.var(ddof=1) + max(0.0, parts.sum() - noise_variance)
    if variance == 0:
        return RecipeInterval(n_seeds, np.nan, np.nan, np.nan)
    squares = np.sum(parts**2 / freedom)
    df = variance**2 / squares if squares > 0 else np.inf
    reach = student_quantile(0.975, df) * np.sqrt(variance)
    p_value = 2 * student_tail(abs(value) / np.sqrt(variance), df)
    if bounds is None or value in bounds:
        return RecipeInterval(n_seeds, value - reach, value + reach, p_value)
    low, high = bounds
    share = (value - low) / (high - low)
    turn = reach / (high - low) / (share * (1 - share))  # on the scale of log-odds
    ends = low + (high - low) * expit(logit(share) + np.array([-turn, turn]))
    return RecipeInterval(n_seeds, float(ends[0]), float(ends[1]), p_value)


def seeds_reach(by_seed: BySeed, noise: float = 0.0, level: float = LEVEL) -> float:
    """Return the half-width of the interval of a mean over seeds, on the same questions.

    It is 0 for an estimator without training (only seed 0) and for a single seed.

    >>> round(seeds_reach({17: 0.4, 18: 0.5, 19: 0.6}), 3)  # 4.303 × .1 / √3
    0.248
    """
    n = len(by_seed)
    if n < 2:
        return 0.0
    spread = float(np.var(np.array([*by_seed.values()]), ddof=1)) - noise
    return float(student_quantile(1 - level / 2, n - 1)) * (max(0.0, spread) / n) ** 0.5


def claim_interval(
    value: float,
    replicates: Array,
    by_seed: BySeed,
    noise: float = 0.0,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the interval on which a claim about an estimator rests.

    Without training, or with one seed, it is the percentile interval over questions. With S
    seeds, whose mean has the variance :math:`s^2 / S`, the variances add, and the ends are
    Student's with (S − 1) V / (s² / S) degrees of freedom for the sum V. `recipe_interval` has
    the square of this share, and with three seeds too many claims: docs/validation.md has the
    attained levels of both.
    """
    tails = level / 2, 1 - level / 2
    low, high = np.quantile(replicates, tails).tolist()
    n = len(by_seed)
    if n < 2 or np.isnan(low):
        return low, high
    z = normal_quantile(tails[1])
    spread = max(0.0, float(np.var(np.array([*by_seed.values()]), ddof=1)) - noise) / n
    total = ((high - low) / 2 / z) ** 2 + spread
    if not spread or not total:
        return low, high
    wider = float(student_quantile(tails[1], (n - 1) * total / spread)) / z
    below, above = wider * np.hypot([value - low, high - value], z * spread**0.5)
    return value - float(below), value + float(above)


def intervals(replicates: Replicates) -> pd.DataFrame:
    """Return 95 % intervals of each metric and estimator, over questions and over seeds, too.

    The result has the columns of the table INTERVALS but for model and dataset. The first
    interval is a percentile interval over questions, `recipe_interval` gives the second. Both
    are NaN if the metric is undefined or has no valid interval, if it does not vary (a constant
    confidence has a Δ₀ᵇ of exactly 0), or if a pair gains or loses too few questions.
    `add_noise_floors` fills the columns about calibration.
    """
    rows = []
    for key, values in replicates.observed.items():
        counts = replicates.fewest.get(key, (None, None))
        replicated = replicates.for_claims(key)
        ends = np.quantile(replicated, [0.025, 0.975], axis=1)
        has_width = np.round(ends[1] - ends[0], DECIMALS) > 0
        low, high = np.where(has_width, ends, np.nan)
        for i, member in enumerate(replicates.estimators):
            recipe = recipe_interval(
                values[i],
                replicated[i],
                [replicates.by_seed[key][i]],
                replicates.noise[key][i],
                METRICS[key.metric].bounds,
            )
            rows.append((*member, *key, values[i], low[i], high[i], *recipe[:3], *counts))
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
        names = [_member(name, replicates.estimators, block) for name in members]
        index = [replicates.estimators.index(name) for name in names]
        for key, values in replicates.observed.items():
            sign = -1 if METRICS[key.metric].lower_is_better else 1
            # rounded, so that equal values are equal for any order of summation
            data, drawn, claimed = (
                np.round(sign * given[index], DECIMALS)
                for given in (values, replicates.replicated[key], replicates.for_claims(key))
            )
            if np.isnan(data).all():
                undefined.setdefault((block, key.scope), []).append(METRICS[key.metric].heading)
                continue
            best = int(np.nanargmax(data))
            others = [i for i in range(len(names)) if i != best]
            sides = [
                {seed: sign * value for seed, value in replicates.by_seed[key][i].items()}
                for i in index
            ]
            noise = replicates.noise[key][index]
            tests = [
                _compare(
                    data[best] - data[i],
                    drawn[best] - drawn[i],
                    claimed[best] - claimed[i],
                    [sides[best], sides[i]],
                    max(noise[best], noise[i]),
                )
                for i in others
            ]
            together = compare_estimators(replicates, index, key)
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
    lower = float(np.quantile(stratified, 0.05))  # NaN if a replicate is
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


def holm_over_tables(tests: pd.DataFrame) -> pd.DataFrame:
    """Adjust p-values for all tests of the same metric, over all models and datasets.

    `tests` has each test once. A test that two blocks share counts twice, which is
    conservative.
    """
    families = tests.groupby(KEY, sort=False)["p_value"]
    return tests.assign(p_holm=families.transform(holm))


class Simultaneous(NamedTuple):
    """Comparison of all pairs of estimators: arrays of shape (n_estimators, n_estimators).

    `difference` is positive if the first estimator is better. `error` and `p_adjusted` are NaN
    for pairs without a test: an estimator is undefined, or no replicate changes the difference.
    """

    difference: Array
    error: Array
    critical: float
    p_adjusted: Array

    @property
    def lower(self) -> Array:
        """Lower ends of the simultaneous intervals."""
        return self.difference - self.critical * self.error

    @property
    def upper(self) -> Array:
        """Upper ends of the simultaneous intervals."""
        return self.difference + self.critical * self.error

    @property
    def above(self) -> Mask:
        """Whether the first estimator is better by an interval that excludes 0."""
        return (self.p_adjusted <= LEVEL) & (self.difference > 0)

    @property
    def tied(self) -> Mask:
        """Whether two estimators are equal on the data and on every replicate."""
        return np.isnan(self.error) & (np.abs(self.difference) <= TINY)

    def near(self, best: int) -> list[bool | None]:
        """Return for each estimator whether it is in the set of the best.

        None if it has no test against the estimator at position `best`.
        """
        has_test = ~np.isnan(self.error[best]) | self.tied[best]
        return [bool(n) if t else None for n, t in zip(self.in_best_set, has_test, strict=True)]

    @property
    def in_best_set(self) -> Mask:
        """Whether no other estimator is above. An estimator without a test is not excluded."""
        return np.asarray(~self.above.any(axis=0))


def compare_estimators(
    replicates: Replicates, index: Sequence[int], key: MetricKey
) -> Simultaneous:
    """Compare the estimators at some positions on a metric, see `compare_all`."""
    sign = -1 if METRICS[key.metric].lower_is_better else 1
    resampled = replicates.replicated[key][index]
    # the replicates for claims can differ for estimators that agree on every question
    same = [np.abs(resampled - values).max(axis=1) <= TINY for values in resampled]
    return compare_all(
        sign * replicates.observed[key][index],
        sign * replicates.for_claims(key)[index],
        replicates.n_effective[key],
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
    largest = np.sort(-scale * student_quantile(normal_tail(largest), freedom)).round(
        DEVIATION_DECIMALS
    )
    difference = values[:, None] - values
    # the largest number of replicates above the critical value with a p-value of 5 %
    rank = int(LEVEL * (1 + n_replicates) + 1e-9)
    critical = float(largest[-rank]) if rank else np.inf
    observed = (np.abs(difference) / error).round(DEVIATION_DECIMALS)
    exceeding = n_replicates - np.searchsorted(largest, observed)
    p_adjusted = np.where(np.isnan(error), np.nan, (1 + exceeding) / (1 + n_replicates))
    return Simultaneous(difference, error, critical, p_adjusted)

r"""Samples: a number on the data and on replicates of the questions, and its intervals.

A bootstrap of questions does not vary the trained adapters. Another training run gives other
adapters, so the variance of a mean over S seeds has two parts,

.. math:: \hat V = \hat V_\text{questions} + s^2 / S,

the bootstrap variance and the variance :math:`s^2` between seeds on the same questions, which
has S − 1 degrees of freedom. The interval is Student's, with Satterthwaite's degrees of freedom
for the sum: nearly 2 for three seeds that differ much.

Seeds also differ on single questions. On the data such differences count in :math:`s^2`, and
they count again in the bootstrap variance. On a replicate, where questions are drawn again, the
variance between seeds is larger by just their part. So `noise`, the excess of the variance
between seeds on replicates over that on the data, is subtracted from :math:`s^2`. For two
estimators it is the larger excess, which is at most the excess of their difference unless equal
seeds make nearly the same mistakes.

Near the end of a metric's range, seeds differ on one side of the mean only, so the interval of
a single metric with `bounds` is symmetric in log-odds.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri, stdtr, stdtrit

from persistcal.evaluation.predictions import Array, training_seeds
from persistcal.evaluation.proportions import DECIMALS, two_sided_p

BySeed = Mapping[int, float]  # the metric of each seed on the data
LEVEL = 0.05


class Bounds(NamedTuple):
    """A metric and its interval; NaN without one."""

    value: float
    lower: float
    upper: float

    def side(self, chance: float) -> int:
        """Return 1 if the interval is above `chance`, −1 if it is below, else 0.

        >>> [Bounds(0.6, *ends).side(0.5) for ends in ((0.51, 0.7), (0.4, 0.7), (0.3, 0.4))]
        [1, 0, -1]
        """
        return int(self.lower > chance) - int(self.upper < chance)


class Sample(NamedTuple):
    """A metric of one estimator: on the data, on replicates of the questions, and by seed.

    `value` is the mean over seeds, and `draws`, (n_replicates,), are such means on replicates:
    NaN where the metric has no interval. `noise` is the excess variance between seeds.
    """

    value: float
    draws: Array
    by_seed: BySeed
    noise: float = 0.0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval on which a claim about an estimator rests.

        Without training, or with one seed, it is the percentile interval over questions. With S
        seeds, whose mean has the variance :math:`s^2 / S`, the variances add, and the ends are
        Student's with (S − 1) V / (s² / S) degrees of freedom for the sum V. `recipe_interval`
        has the square of this share, and with three seeds too many claims: docs/validation.md
        has the attained levels of both.
        """
        tails = level / 2, 1 - level / 2
        low, high = np.quantile(self.draws, tails).tolist()
        n = len(self.by_seed)
        if n < 2 or np.isnan(low):
            return low, high
        z = float(ndtri(tails[1]))
        spread = self._spread() / n
        total = ((high - low) / 2 / z) ** 2 + spread
        if not spread or not total:
            return low, high
        wider = float(stdtrit((n - 1) * total / spread, tails[1])) / z
        below, above = wider * np.hypot([self.value - low, high - self.value], z * spread**0.5)
        return self.value - float(below), self.value + float(above)

    def half_width_over_seeds(self, level: float = LEVEL) -> float:
        """Return the half-width of the interval of a mean over seeds, on the same questions.

        It is 0 for an estimator without training (only seed 0) and for a single seed.

        >>> sample = Sample(0.5, np.empty(0), {17: 0.4, 18: 0.5, 19: 0.6})
        >>> round(sample.half_width_over_seeds(), 3)  # 4.303 × .1 / √3
        0.248
        """
        n = len(self.by_seed)
        if n < 2:
            return 0.0
        return float(stdtrit(n - 1, 1 - level / 2)) * (self._spread() / n) ** 0.5

    def _spread(self) -> float:
        """Return the variance between seeds without `noise`."""
        spread = float(np.var(np.array([*self.by_seed.values()]), ddof=1)) - self.noise
        return max(0.0, spread)


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
    trained = [side for side in sides if training_seeds(side)]
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
    half_width = stdtrit(df, 0.975) * np.sqrt(variance)
    p_value = 2 * float(stdtr(df, -abs(value) / np.sqrt(variance)))
    if bounds is None or value in bounds:
        return RecipeInterval(n_seeds, value - half_width, value + half_width, p_value)
    low, high = bounds
    share = (value - low) / (high - low)
    turn = half_width / (high - low) / (share * (1 - share))  # on the scale of log-odds
    ends = low + (high - low) * expit(logit(share) + np.array([-turn, turn]))
    return RecipeInterval(n_seeds, float(ends[0]), float(ends[1]), p_value)

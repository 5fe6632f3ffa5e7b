r"""Intervals over seeds and questions: of a recipe, and not of the adapters at hand.

The bootstrap of questions holds the trained adapters fixed. Another training run gives others,
so the variance of a mean over S seeds has two parts,

.. math:: \hat V = \hat V_\text{questions} + s^2 / S,

the bootstrap's and that between seeds on the same questions, whose :math:`s^2` has S − 1
degrees of freedom. The interval is Student's, with Satterthwaite's degrees of freedom for the
sum: with three seeds that differ much, nearly 2. What seeds differ in by single questions would
be in both parts: it is estimated by how much more they differ on replicates, and taken from the
second one. Of two estimators the larger such noise is taken, which is no more than that of
their difference unless equal seeds make nearly the same mistakes.

Near the end of a metric's range seeds differ on one side of the mean only, so that the interval
of a single metric with `bounds` is symmetric on the scale of log-odds.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import t

from persistcal.evaluation.proportions import DECIMALS, two_sided_p

BySeed = Mapping[int, float]  # the metric of each seed on the data


class RecipeInterval(NamedTuple):
    """A 95 % interval over seeds and questions.

    `n_seeds` is the fewest of an estimator that has seeds, 0 where none has; with a single one,
    of which nothing is learnt about others, the ends are NaN. `p_value` is two-sided, of a
    value of 0; NaN without any variance.
    """

    n_seeds: int
    lower: float
    upper: float
    p_value: float


def has_seeds(by_seed: BySeed) -> bool:
    """Return whether an estimator is random: one of seed 0 alone is the same each time."""
    return set(by_seed) != {0}


def recipe_interval(
    value: float,
    replicates: NDArray[np.float64],
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
        Of the one or two estimators, the metric by seed. Estimators with the same seeds are
        paired by them, as equal seeds begin equal. Where none has seeds, interval and p-value
        are those of the replicates.
    noise : float, default=0
        Variance between seeds that comes from the questions.
    bounds : (float, float), optional
        The ends of the metric's range; of a difference, none.

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
    trained = [side for side in sides if has_seeds(side)]
    n_seeds = min(map(len, trained), default=0)
    if np.isnan(value) or np.isnan(replicates).any() or n_seeds == 1:
        return RecipeInterval(n_seeds, np.nan, np.nan, np.nan)
    if not trained:
        low, high = np.quantile(replicates, [0.025, 0.975])
        if round(high - low, DECIMALS) == 0:  # an interval without width is none
            return RecipeInterval(0, np.nan, np.nan, two_sided_p(replicates))
        return RecipeInterval(0, float(low), float(high), two_sided_p(replicates))
    runs = [np.array(list(side.values())) for side in trained]
    if len(trained) == 2 and trained[0].keys() == trained[1].keys():
        runs = [np.array([one - trained[1][seed] for seed, one in trained[0].items()])]
    parts = np.array([run.var(ddof=1) / len(run) for run in runs])
    freedom = np.array([len(run) - 1 for run in runs])
    of_noise = noise / min(map(len, runs))
    variance = replicates.var(ddof=1) + max(0.0, parts.sum() - of_noise)
    if variance == 0:
        return RecipeInterval(n_seeds, np.nan, np.nan, np.nan)
    of_seeds = np.sum(parts**2 / freedom)
    df = variance**2 / of_seeds if of_seeds > 0 else np.inf
    reach = t.ppf(0.975, df) * np.sqrt(variance)
    p_value = float(2 * t.sf(abs(value) / np.sqrt(variance), df))
    if bounds is None or value in bounds:
        return RecipeInterval(n_seeds, value - reach, value + reach, p_value)
    low, high = bounds
    share = (value - low) / (high - low)
    turn = reach / (high - low) / (share * (1 - share))  # on the scale of log-odds
    ends = low + (high - low) * expit(logit(share) + np.array([-turn, turn]))
    return RecipeInterval(n_seeds, float(ends[0]), float(ends[1]), p_value)

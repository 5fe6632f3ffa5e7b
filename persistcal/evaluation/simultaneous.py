r"""All pairs of estimators on one metric, compared at once by the bootstrap of the maximum.

Replicates :math:`b` of the difference :math:`d_{ij}` of two estimators have the standard
deviation :math:`s_{ij}`. The critical value is the 95 % quantile of the largest deviation,

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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from persistcal.evaluation.evaluate import Key
from persistcal.evaluation.metrics import MEASURES
from persistcal.evaluation.replicates import Replicates

Array = NDArray[np.float64]
LEVEL = 0.05
TINY = 1e-6  # smaller differences are rounding
DECIMALS = 9  # of deviations: equal ones are equal for any order of summation


class Simultaneous(NamedTuple):
    """Comparison of all pairs of estimators.

    `difference`, `error` and `p_adjusted` have shape (n_estimators, n_estimators); `error` and
    `p_adjusted` are NaN for pairs without a test: an estimator is undefined, or no replicate
    changes the difference. `difference` is positive if the first estimator is better.
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
    def above(self) -> NDArray[np.bool_]:
        """Whether the first estimator is better by an interval that excludes 0."""
        return (self.p_adjusted <= LEVEL) & (self.difference > 0)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Whether two estimators are equal on the data and on every replicate."""
        return np.isnan(self.error) & (np.abs(self.difference) <= TINY)

    @property
    def in_best_set(self) -> NDArray[np.bool_]:
        """Whether no other estimator is above. An estimator without a test is not excluded."""
        return np.asarray(~self.above.any(axis=0))


def compare_estimators(replicates: Replicates, index: Sequence[int], key: Key) -> Simultaneous:
    """Compare the estimators at some positions on a metric, see `compare_all`."""
    sign = -1 if MEASURES[key[2]].lower_is_better else 1
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
    values: Array,
    drawn: Array,
    n_questions: float = np.inf,
    same: NDArray[np.bool_] | None = None,
) -> Simultaneous:
    """Compare all pairs of estimators on one metric.

    Parameters
    ----------
    values : ndarray of shape (n_estimators,)
        The metric on the data, larger for better estimators; NaN if undefined.
    drawn : ndarray of shape (n_estimators, n_replicates)
        The metric on the same bootstrap replicates; a row with NaN is undefined.
    n_questions : float, default=inf
        Number of questions that the metric rests on, see
        `persistcal.evaluation.replicates.effective_questions`. Student's distribution has one
        degree of freedom less.
    same : bool ndarray of shape (n_estimators, n_estimators), optional
        Pairs that are equal on any questions, and have no test.

    Returns
    -------
    Simultaneous
        `p_adjusted` is (1 + number of replicates with a largest deviation over all pairs of at
        least the observed one) / (1 + n_replicates). It is at most 5 % if and only if the
        interval of the pair excludes 0.

    Examples
    --------
    For one pair, replicates of the difference are 0.5 or 0.3, one standard deviation from their
    mean, and the observed difference is nearly four standard deviations from 0.

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
    largest = np.sort(scale * t.isf(norm.sf(largest), freedom)).round(DECIMALS)
    difference = values[:, None] - values
    # the largest number of replicates above the critical value with a p-value of 5 %
    rank = int(LEVEL * (1 + n_replicates) + 1e-9)
    critical = float(largest[-rank]) if rank else np.inf
    observed = (np.abs(difference) / error).round(DECIMALS)
    exceeding = n_replicates - np.searchsorted(largest, observed)
    p_adjusted = np.where(np.isnan(error), np.nan, (1 + exceeding) / (1 + n_replicates))
    return Simultaneous(difference, error, critical, p_adjusted)

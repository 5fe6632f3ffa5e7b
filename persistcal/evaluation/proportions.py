"""Intervals of shares, comparisons of two values, and Holm's adjustment of p-values.

Distributions are from scipy.special, because scipy.stats takes half a second to import.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betainc, betaincinv, betaln, ndtri, stdtrit

Z = float(ndtri(0.975))  # standard errors of a 95 % interval
SPREADS = 12.0  # standard deviations below which a hypergeometric probability adds nothing
DECIMALS = 12  # equal values can differ by rounding in later decimals


def wilson(share: ArrayLike, n: ArrayLike, z: float = Z) -> tuple[NDArray, NDArray]:
    """Return the ends of the 95 % Wilson score interval of shares of n questions.

    The interval reaches `z` standard errors.

    References
    ----------
    .. [1] Wilson, "Probable Inference, the Law of Succession, and Statistical
       Inference", JASA 1927.

    Examples
    --------
    >>> [round(float(end), 3) for end in wilson(0.9, 10)]
    [0.596, 0.982]
    """
    p, size = np.asarray(share, float), np.asarray(n, float)
    centre = p + z**2 / (2 * size)
    reach = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2))
    scale = 1 + z**2 / size
    return np.maximum(0, centre - reach) / scale, np.minimum(scale, centre + reach) / scale


def exact_interval(k: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper–Pearson interval of k of n.

    >>> [round(end, 3) for end in exact_interval(9, 10)]
    [0.555, 0.997]
    """
    tail = (1 - level) / 2
    lower = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    upper = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return lower, upper


class StateDifference(NamedTuple):
    """Two values, their difference, its 95 % interval and two-sided p-value."""

    earlier: float
    later: float
    difference: float
    lower: float
    upper: float
    p_value: float


def compare_accuracies(earlier: ArrayLike, later: ArrayLike, z: float = Z) -> StateDifference:
    """Compare two accuracies on the same questions, at least one.

    The interval reaches `z` standard errors.

    The interval of later − earlier is Newcombe's hybrid score interval for paired data
    (method 10) [2]_. The p-value is McNemar's exact one, from a fair coin for each changed
    question [1]_.

    References
    ----------
    .. [1] McNemar, "Note on the sampling error of the difference between correlated
       proportions or percentages", Psychometrika 1947.
    .. [2] Newcombe, "Improved confidence intervals for the difference between binomial
       proportions based on paired data", Statistics in Medicine 1998.

    Examples
    --------
    Newcombe's example with 50 questions: 36 right at both, 12 and 2 at one, and 0 at neither

    >>> one = np.repeat([1, 1, 0], [36, 12, 2])
    >>> other = np.repeat([1, 0, 1], [36, 12, 2])
    >>> result = compare_accuracies(other, one)
    >>> [round(value, 4) for value in result[2:5]]
    [0.2, 0.0569, 0.3404]
    """
    first, second = np.asarray(earlier, bool), np.asarray(later, bool)
    n = len(first)
    n_both, n_neither = int((first & second).sum()), int((~first & ~second).sum())
    lost, gained = int((first & ~second).sum()), int((~first & second).sum())
    p1, p2 = (n_both + lost) / n, (n_both + gained) / n
    # correlation of the two, with Newcombe's correction for continuity where it is positive
    product = n_both * n_neither - lost * gained
    agreement = max(product - n / 2, 0) if product > 0 else product
    spread = (n_both + lost) * (gained + n_neither) * (n_both + gained) * (lost + n_neither)
    phi = agreement / math.sqrt(spread) if spread else 0.0  # an integer above 2⁶⁴, too
    (low1, high1), (low2, high2) = wilson(p1, n, z), wilson(p2, n, z)

    below, above = (
        float(np.sqrt(max(0.0, a**2 - 2 * phi * a * b + b**2)))
        for a, b in (
            (p2 - float(low2), float(high1) - p1),
            (float(high2) - p2, p1 - float(low1)),
        )
    )
    changed = lost + gained
    return StateDifference(
        p1,
        p2,
        p2 - p1,
        p2 - p1 - below,
        p2 - p1 + above,
        min(1.0, 2 * float(binomial_cdf(min(lost, gained), changed, 0.5))),
    )


def clustered_reach(values: ArrayLike, groups: ArrayLike, level: float) -> float:
    """Return the half-width of the interval of a mean of values that are alike within groups.

    Two groups of two equal values, 1 and 0: a standard error of √(½² + ½²) / 2 × √(2 / (2 − 1))
    times Student's quantile with one degree of freedom, 1

    >>> round(clustered_reach([1, 1, 0, 0], [0, 0, 1, 1], 0.5), 3)
    0.5
    """
    numbers = np.asarray(values, float)
    _, group = np.unique(groups, return_inverse=True)
    sums = np.bincount(group, numbers - numbers.mean())
    freedom = max(1, len(sums) - 1)
    error = np.sqrt((sums**2).sum() * len(sums) / freedom) / len(numbers)
    return float(error * stdtrit(freedom, (1 + level) / 2))


def two_sided_p(replicates: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of a difference that is 0, from its replicates.

    It is twice the share of replicates on the rarer side of 0. The data count as one more
    replicate, so it is never 0. One of 3 replicates is below 0: 2 (1 + 1) / (1 + 3)

    >>> two_sided_p(np.array([-0.1, 0.2, 0.3]))
    1.0
    """
    rarer = min(np.sum(replicates <= 0), np.sum(replicates >= 0))
    return float(min(1.0, 2 * (1 + rarer) / (1 + len(replicates))))


def compare_replicates(
    earlier: float, later: float, replicates: NDArray[np.float64]
) -> StateDifference:
    """Compare two values by the replicates of their difference: a percentile interval.

    Interval and p-value are NaN if a replicate is undefined or if the interval has zero width:
    replicates without variation contain no information about other questions.
    """
    difference = round(later - earlier, DECIMALS) + 0.0  # which turns -0 to 0
    drawn = np.round(replicates, DECIMALS)
    low = high = p_value = np.nan
    if not np.isnan(difference) and not np.isnan(drawn).any():
        low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
        if low == high:
            low = high = np.nan
        else:
            p_value = two_sided_p(drawn)
    return StateDifference(earlier, later, difference, low, high, p_value)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for their number by Holm's method; NaN stay and are not counted.

    References
    ----------
    .. [1] Holm, "A simple sequentially rejective multiple test procedure",
       Scandinavian Journal of Statistics 1979.

    Examples
    --------
    3 x 0.01; then 2 x 0.02; then 0.03, but not less than the one before:

    >>> holm([0.01, 0.03, 0.02])
    array([0.03, 0.04, 0.04])
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)[: np.sum(~np.isnan(p))]  # NaN are sorted last
    adjusted = np.full(len(p), np.nan)
    scaled = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


def binomial_cdf(k: ArrayLike, n: ArrayLike, p: float) -> NDArray[np.float64]:
    """Return the probability of at most k successes in n, −1 ≤ k ≤ n.

    >>> binomial_cdf([-1, 0, 1, 2], 2, 0.5).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    most, size = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float))
    inside = (most >= 0) & (most < size)
    below = betainc(np.where(inside, size - most, 1), np.where(inside, most + 1, 1), 1 - p)
    return np.where(inside, below, most >= size)


def binomial_quantile(share: float, n: ArrayLike, p: float) -> NDArray[np.float64]:
    """Return the smallest number of successes in n whose `binomial_cdf` reaches a share.

    >>> binomial_quantile(0.25, [1, 2], 0.5).tolist()
    [0.0, 0.0]
    """
    size = np.asarray(n, float)
    k = np.ceil(np.clip(bdtrik(share, size, p), 0, size))
    return np.where((k > 0) & (binomial_cdf(k - 1, size, p) >= share), k - 1, k)


@lru_cache(maxsize=10_000)  # sheets often have equal counts
def hypergeometric_cdf(k: int, n_all: int, n_marked: int, n_drawn: int) -> float:
    """Return the probability that at most k of n drawn answers are marked ones.

    >>> round(hypergeometric_cdf(0, 5, 2, 2), 12)  # 3/5 × 2/4
    0.3
    """
    least = max(0, n_drawn - (n_all - n_marked))
    if k >= min(n_drawn, n_marked):
        return 1.0
    share = n_marked / n_all
    spread = np.sqrt(n_drawn * share * (1 - share) * (n_all - n_drawn) / max(1, n_all - 1))
    # Terms fall from k downwards, or k is above the mean and its terms are around that
    start = min(k, int(n_drawn * share)) - int(SPREADS * spread) - 50
    terms = np.arange(max(least, start), k + 1)
    if not len(terms):
        return 0.0
    logs = _log_choose(n_marked, terms) + _log_choose(n_all - n_marked, n_drawn - terms)
    return float(min(1.0, np.exp(logs - _log_choose(n_all, n_drawn)).sum()))


def _log_choose(n: int, k: ArrayLike) -> NDArray[np.float64]:
    taken = np.asarray(k, float)
    return np.asarray(-np.log1p(n) - betaln(n - taken + 1, taken + 1))

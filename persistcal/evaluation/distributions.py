"""Distributions of tests, from scipy.special: scipy.stats takes half a second to import."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betainc, betaincinv, betaln, ndtr, ndtri, stdtr, stdtrit

Z = float(ndtri(0.975))  # standard errors of a 95 % interval
SPREADS = 12.0  # standard deviations below which a hypergeometric probability adds nothing


def normal_quantile(share: float) -> float:
    """Return the value that a standard normal variable is below with a probability."""
    return float(ndtri(share))


def normal_tail(value: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that a standard normal variable is above a value."""
    return np.asarray(ndtr(-np.asarray(value)))


def student_quantile(share: ArrayLike, freedom: ArrayLike) -> NDArray[np.float64]:
    """Return the value that a variable with Student's distribution is below."""
    return np.asarray(stdtrit(freedom, share))


def student_tail(value: float, freedom: float) -> float:
    """Return the probability that a variable with Student's distribution is above a value."""
    return float(stdtr(freedom, -value))


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the value that a beta variable is below with a probability."""
    return float(betaincinv(a, b, share))


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
    chosen = np.asarray(k, float)
    return np.asarray(-np.log1p(n) - betaln(n - chosen + 1, chosen + 1))

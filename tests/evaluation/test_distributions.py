"""Distributions of tests, against scipy.stats."""

import numpy as np
import pytest
from scipy import stats

from persistcal.evaluation import proportions as ours

SHARES = np.array([1e-6, 0.025, 0.05, 0.3, 0.95, 0.975])


@pytest.fixture
def sizes() -> np.ndarray:
    return np.array([1, 2, 7, 40, 999, 5_000, 100_000])


@pytest.mark.parametrize("p", [0.05, 0.5, 0.8, 0.99])
def test_binomial_probabilities_and_quantiles_are_those_of_scipy_stats(sizes, p):
    for k in (-1, 0, sizes // 3, (sizes * p).astype(int), sizes):
        by_scipy = stats.binom.cdf(k, sizes, p)
        assert ours.binomial_cdf(k, sizes, p) == pytest.approx(by_scipy, rel=1e-12, abs=1e-300)
    for share in SHARES:
        by_scipy = stats.binom.ppf(share, sizes, p)
        assert ours.binomial_quantile(share, sizes, p).tolist() == by_scipy.tolist()


@pytest.mark.parametrize(
    ("n_all", "n_marked", "n_drawn"),
    [(5, 2, 2), (50, 11, 40), (3_000, 600, 250), (100_000, 20_000, 2_000), (9, 9, 4)],
)
def test_hypergeometric_probabilities_are_those_of_scipy_stats(n_all, n_marked, n_drawn):
    mean = n_drawn * n_marked / n_all
    for k in {-1, 0, int(mean / 2), int(mean), int(mean) + 3, n_drawn}:
        by_scipy = stats.hypergeom.cdf(k, n_all, n_marked, n_drawn)
        share_below = ours.hypergeometric_cdf(k, n_all, n_marked, n_drawn)
        assert share_below == pytest.approx(by_scipy, rel=1e-9, abs=1e-100)

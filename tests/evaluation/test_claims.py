"""Verdicts on estimators in words, and the intervals that they depend on."""

import numpy as np
import pytest
from scipy.stats import norm, t

from persistcal.evaluation.claims import bounds_of, word_of
from persistcal.evaluation.samples import Bounds, Sample

ABOVE, CHANCE, BELOW = (0.1, 0.3), (-0.1, 0.2), (-0.3, -0.1)


@pytest.mark.parametrize(
    ("balance", "order", "basis", "word"),
    [
        (ABOVE, ABOVE, "cross", "followed"),
        (ABOVE, ABOVE, "one ask", "followed"),
        (ABOVE, ABOVE, "samples", "moved with the labels"),
        (CHANCE, ABOVE, "cross", "followed in order only"),
        (BELOW, ABOVE, "one ask", "followed in order only"),
        (CHANCE, ABOVE, "samples", "moved with the labels, in order only"),
        (ABOVE, CHANCE, "cross", "not shown to have followed"),
        (CHANCE, CHANCE, "samples", "not shown to have followed"),
        (CHANCE, BELOW, "one ask", "moved against"),
        (ABOVE, CHANCE, "control", "followed"),
        (CHANCE, ABOVE, "control", "followed in order only"),
        (BELOW, ABOVE, "control", "moved against"),
        ((np.nan, np.nan), (np.nan, np.nan), "cross", "too few changed questions"),
    ],
)
def test_the_verdict_follows_the_intervals_of_its_basis(balance, order, basis, word):
    in_balance = Bounds(0.1, *balance)
    in_order = Bounds(0.6, *(0.5 + end for end in order))
    assert word_of(in_balance, in_order, basis) == word


def test_the_interval_of_a_claim_includes_the_variation_of_seeds():
    replicates = 0.5 + 0.1 * norm.ppf((np.arange(4000) + 0.5) / 4000)
    by_seed = {17: 0.4, 18: 0.5, 19: 0.6}
    # Variance: .01 (questions) + .1² / 3 (seeds) = .01333, four times the part of the seeds.
    # Degrees of freedom: (3 − 1) × 4 = 8
    reach = t.ppf(0.975, 8) * np.sqrt(0.01 + 0.01 / 3)
    assert Sample(0.5, replicates, by_seed).interval() == pytest.approx(
        (0.5 - reach, 0.5 + reach), abs=1e-3
    )
    assert Sample(0.5, replicates, {17: 0.5}).interval() == pytest.approx(
        (0.304, 0.696), abs=1e-3
    )


def test_the_interval_of_a_claim_over_two_seeds_stays_in_the_range_of_the_metric():
    """Two seeds have one degree of freedom: .842 ± 12.7 × .03 leaves [0, 1]."""
    auc, balance = ({17: middle - 0.03, 18: middle + 0.03} for middle in (0.842, -0.9))
    replicates = np.linspace(-0.1, 0.1, 400)
    sample = Sample(0.842, 0.842 + replicates, auc)
    assert sample.interval()[1] > 1
    order = bounds_of("change_auc", sample)
    moved = bounds_of("delta0_balanced", Sample(-0.9, -0.9 + replicates, balance))
    assert order.upper == 1 and 0 < order.lower < 0.842
    assert moved.lower == -1 and -0.9 < moved.upper < 0


@pytest.mark.parametrize("n_seeds", [3, 5])
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_recipes_without_an_effect_are_claimed_in_at_most_7_percent_of_studies(n_seeds, ratio):
    """Seeds vary by `ratio` times the variation of samples of questions."""
    rng = np.random.default_rng(0)
    grid = norm.ppf((np.arange(200) + 0.5) / 200)
    claimed = 0
    for _ in range(600):
        by_seed = ratio * rng.normal(size=n_seeds) + rng.normal()
        of_seeds = dict(enumerate(by_seed.tolist(), 17))
        low, high = Sample(by_seed.mean(), by_seed.mean() + grid, of_seeds).interval()
        claimed += low > 0 or high < 0
    assert claimed / 600 <= 0.07

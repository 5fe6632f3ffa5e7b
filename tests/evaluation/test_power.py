"""Stated power, and that of brute force: worlds through the tests that a study makes."""

import numpy as np
import pytest
from scipy.stats import norm

from persistcal.evaluation.draws import component, draw_sequences, reach, take
from persistcal.evaluation.metrics import auc, balanced_gap
from persistcal.evaluation.power import (
    LEVEL,
    Flips,
    accuracy_difference,
    accuracy_power,
    auc_error,
    delta0_difference,
    delta0_error,
    multiple,
    questions_needed,
)
from persistcal.evaluation.proportions import compare_accuracies, compare_replicates

FLIPS, N = Flips(0.12, 0.08), 1500
GAINED = np.arange(300) < 180  # of the flipped ones


def counts(seed):
    part = component(np.arange(300), GAINED)
    sequences = draw_sequences(300, range(400), seed=seed, reach=reach([part], 300))
    return take(part, sequences)


DRAWN = [counts(seed) for seed in range(8)]


def power_of(difference, error):
    """Power of a two-sided test of a difference with a standard error."""
    reach = norm.ppf(1 - LEVEL / 2)
    return norm.sf(reach - difference / error) + norm.cdf(-reach - difference / error)


def test_power_of_delta0_is_that_of_the_bootstrap():
    rng, told = np.random.default_rng(0), []
    for world in range(1500):
        apart = rng.random(300) < 1 - 0.7
        better = rng.random(300) < 0.5 + 0.18 / (4 * (1 - 0.7))
        gap = apart * np.where(better, 2.0, -2.0)  # of two signs
        drawn = balanced_gap(gap, GAINED, weights=DRAWN[world % len(DRAWN)])
        ends = compare_replicates(0.0, balanced_gap(gap, GAINED), drawn)
        told.append(ends.lower > 0 or ends.upper < 0)
    stated = power_of(0.18, delta0_error(FLIPS, N, 0.7, 0.18))
    assert stated == pytest.approx(np.mean(told), abs=0.02)


@pytest.mark.parametrize("means", [(0.35, 0.6), (0.8, 1.05)])
def test_error_of_contrast_auc_is_its_spread_over_worlds(means):
    shared = 0.6  # of the confidences
    label, rng, differences = np.repeat([1, 0], 300), np.random.default_rng(0), []
    for _ in range(2000):
        noise = rng.normal(size=(3, 300))
        own = np.sqrt(shared) * noise[0] + np.sqrt(1 - shared) * noise[1:]
        right = norm.cdf(np.array(means)[:, None] + own)
        first, second = (auc(np.concatenate([p, 1 - p]), label) for p in right)
        differences.append(second - first)
    # right answers are above 1 - right of another one: Φ(√2 mean), and so is the difference
    one, other = norm.cdf(np.sqrt(2) * np.array(means))
    # A right answer with x is above a share Φ(mean + x) of the wrong ones
    normal = np.random.default_rng(1).multivariate_normal(
        means, [[1, shared], [shared, 1]], 100_000
    )
    [[_, correlation], _] = np.corrcoef(norm.cdf(normal + means).T)
    error = auc_error(FLIPS, N, (one + other) / 2, correlation)
    # the standard deviation of 2,000 is known to 1.6 %
    assert error == pytest.approx(np.std(differences), rel=0.04)


def test_power_of_mcnemars_test_is_that_of_worlds():
    rng, told = np.random.default_rng(0), []
    for _ in range(1500):
        earlier = rng.random(400) < 0.5
        flip = rng.random(400) < np.where(earlier, 2 * 0.06, 2 * 0.12)
        told.append(compare_accuracies(earlier, earlier ^ flip).p_value < 0.05)
    assert accuracy_power(Flips(0.12, 0.06), 400) == pytest.approx(np.mean(told), abs=0.02)


def test_the_smallest_difference_has_the_stated_power():
    # of 90 %, a tenth can be gained at most, so that not all flips can be in that direction
    for accuracy, rate in ((0.6, 0.2), (0.9, 0.15)):
        difference = accuracy_difference(accuracy, rate, 1000)
        power = accuracy_power(Flips.of(accuracy, rate, difference), 1000)
        assert power == pytest.approx(0.8, abs=0.01)
    assert Flips.of(0.6, 0.2, 0.1) == pytest.approx((0.15, 0.05))
    delta = delta0_difference(FLIPS, N, 0.7)
    assert power_of(delta, delta0_error(FLIPS, N, 0.7, delta)) == pytest.approx(0.8, abs=1e-6)
    # a study of as many questions as are needed has it too
    error = delta0_error(FLIPS, N, 0.7)
    n = questions_needed(0.1, error, N)
    assert power_of(0.1, delta0_error(FLIPS, n, 0.7)) == pytest.approx(0.8, abs=1e-3)
    assert power_of(multiple() * error, error) == pytest.approx(0.8, abs=1e-6)


def test_what_no_study_finds_is_said():
    assert np.isnan(accuracy_difference(0.6, 0.01, 100))
    with pytest.raises(ValueError, match=r"No 50% of answers can flip .* guess another"):
        Flips.of(0.1, 0.5)
    with pytest.raises(ValueError, match="lose 4% and gain 8% of all questions"):
        Flips.of(0.93, 0.12, 0.04)

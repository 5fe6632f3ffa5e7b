"""Simultaneous comparisons of all estimators: arithmetic, ties, and the level of the test."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.simultaneous import INDEPENDENT, EstimatorWorld, level
from persistcal.evaluation.significance import compare_all


@pytest.fixture
def replicates():
    """Return values and correlated replicates of five estimators. The first is best."""
    rng = np.random.default_rng(0)
    drawn = 0.1 * rng.normal(size=(5, 399)) + 0.2 * rng.normal(size=399)
    values = np.array([0.9, 0.5, 0.45, 0.4, 0.1])
    return values, drawn + values[:, None]


def test_simultaneous_p_values_are_shares_of_largest_deviations(replicates):
    values, drawn = replicates
    comparison = compare_all(values, drawn)
    deviations = {}
    for i, j in combinations(range(5), 2):
        gap = drawn[i] - drawn[j]
        deviations[i, j] = np.abs(gap - gap.mean()) / gap.std(ddof=1)
    largest = np.max(list(deviations.values()), axis=0)
    # The 20th largest deviation has the p-value 20 / (399 + 1) = 5 %.
    assert comparison.critical == pytest.approx(np.sort(largest)[-20], abs=1e-8)
    for i, j in deviations:
        error = (drawn[i] - drawn[j]).std(ddof=1)
        z = abs(values[i] - values[j]) / error
        p = (1 + (largest >= z).sum()) / 400
        assert comparison.p_adjusted[i, j] == comparison.p_adjusted[j, i] == p
        assert comparison.lower[i, j] == pytest.approx(
            values[i] - values[j] - comparison.critical * error, abs=1e-6
        )
        assert (comparison.lower[i, j] > 0) == (p <= 0.05) == comparison.above[i, j]
    assert comparison.in_best_set.tolist() == [True, False, False, False, False]


def test_a_copy_of_an_estimator_is_tied_with_it_and_changes_no_other_comparison(replicates):
    values, drawn = replicates
    expected = compare_all(values, drawn)
    rounded = 1e-12 * np.sin(np.arange(399))
    twice = compare_all(np.append(values, values[0]), np.vstack([drawn, drawn[0] + rounded]))
    assert twice.critical == pytest.approx(expected.critical, abs=1e-6)
    assert twice.tied[0, 5] and not twice.tied[:5, 1:5][~np.eye(5, 4, -1, bool)].any()
    assert np.isnan(twice.p_adjusted[0, 5]) and np.isnan(twice.lower[0, 5])
    assert twice.in_best_set.tolist() == [True, False, False, False, False, True]


def test_two_estimators_with_constant_replicates_are_not_compared(replicates):
    values, drawn = replicates
    # Confidences that depend only on the checkpoint have a constant AUC.
    fixed = np.vstack([drawn, np.full((2, 399), [[0.2], [0.3]])])
    comparison = compare_all(np.append(values, [0.2, 0.3]), fixed)
    assert (
        np.isnan(comparison.p_adjusted[5, 6])
        and not comparison.above[6, 5]
        and not comparison.tied[5, 6]
    )
    assert comparison.above[0, 5]  # the error of estimator 0
    assert comparison.error[0, 5] == pytest.approx(drawn[0].std(ddof=1))


def test_undefined_estimators_and_too_few_replicates_give_no_claim(replicates):
    values, drawn = replicates
    undefined = np.where(np.arange(5)[:, None] == 1, np.nan, drawn)
    comparison = compare_all(values, undefined)
    assert np.isnan(comparison.lower[1]).all() and not comparison.above[:, 1].any()
    assert comparison.above[0, [2, 3, 4]].all()
    # The smallest p-value, 1 / (1 + 18), is above 5 %.
    assert not compare_all(values, drawn[:, :18]).above.any()
    assert np.isnan(compare_all(values[:1], drawn[:1]).lower).all()


def test_few_questions_widen_simultaneous_intervals(replicates):
    reach = [compare_all(*replicates, n).critical for n in (np.inf, 1000, 30, 5)]
    assert reach == sorted(reach) and reach[1] < 1.01 * reach[0] and reach[3] > 2 * reach[0]


def test_equal_estimators_are_claimed_to_differ_in_about_5_percent_of_studies():
    """The paper's marks call an estimator among ten equal ones worse in most studies."""
    rates = level(
        EstimatorWorld("delta0_balanced", INDEPENDENT), 10, n_worlds=300, n_replicates=199
    )
    # Standard error of a rate of 5 % in 300 studies: 1.3 %
    assert 0.01 <= rates["simultaneous"] <= 0.09
    assert rates["marks"] > 0.5 and rates["holm"] > 0.15

"""All pairs of estimators at once: arithmetic, ties, and the level with equal estimators."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.simultaneous import INDEPENDENT, EstimatorWorld, level
from persistcal.evaluation.significance import compare_all


@pytest.fixture
def world():
    """Five estimators whose replicates correlate, of which the first is best."""
    rng = np.random.default_rng(0)
    drawn = 0.1 * rng.normal(size=(5, 399)) + 0.2 * rng.normal(size=399)
    values = np.array([0.9, 0.5, 0.45, 0.4, 0.1])
    return values, drawn + values[:, None]


def test_quantile_and_p_values_are_those_of_the_largest_deviation(world):
    values, drawn = world
    found = compare_all(values, drawn)
    deviations = {}
    for i, j in combinations(range(5), 2):
        gap = drawn[i] - drawn[j]
        deviations[i, j] = np.abs(gap - gap.mean()) / gap.std(ddof=1)
    largest = np.max(list(deviations.values()), axis=0)
    # 5 % of 399 + 1 is 20: the p-value of the 20th largest deviation is 20 / 400
    assert found.critical == pytest.approx(np.sort(largest)[-20], abs=1e-8)
    for i, j in deviations:
        error = (drawn[i] - drawn[j]).std(ddof=1)
        z = abs(values[i] - values[j]) / error
        p = (1 + (largest >= z).sum()) / 400
        assert found.p_adjusted[i, j] == found.p_adjusted[j, i] == p
        assert found.lower[i, j] == pytest.approx(
            values[i] - values[j] - found.critical * error, abs=1e-6
        )
        assert (found.lower[i, j] > 0) == (p <= 0.05) == found.above[i, j]
    assert found.in_best_set.tolist() == [True, False, False, False, False]


def test_estimators_that_rank_answers_identically_are_tied_and_change_nothing(world):
    values, drawn = world
    alone = compare_all(values, drawn)
    rounded = 1e-12 * np.sin(np.arange(399))
    twice = compare_all(np.append(values, values[0]), np.vstack([drawn, drawn[0] + rounded]))
    assert twice.critical == pytest.approx(alone.critical, abs=1e-6)
    assert twice.tied[0, 5] and not twice.tied[:5, 1:5][~np.eye(5, 4, -1, bool)].any()
    assert np.isnan(twice.p_adjusted[0, 5]) and np.isnan(twice.lower[0, 5])
    assert twice.in_best_set.tolist() == [True, False, False, False, False, True]


def test_a_difference_that_no_replicate_changes_is_no_evidence(world):
    values, drawn = world
    # a fixed value each, as the AUC of confidences that only know the checkpoint
    fixed = np.vstack([drawn, np.full((2, 399), [[0.2], [0.3]])])
    found = compare_all(np.append(values, [0.2, 0.3]), fixed)
    assert np.isnan(found.p_adjusted[5, 6]) and not found.above[6, 5] and not found.tied[5, 6]
    assert found.above[0, 5]  # its error is that of the other one
    assert found.error[0, 5] == pytest.approx(drawn[0].std(ddof=1))


def test_undefined_estimators_and_too_few_replicates_give_no_claim(world):
    values, drawn = world
    undefined = np.where(np.arange(5)[:, None] == 1, np.nan, drawn)
    found = compare_all(values, undefined)
    assert np.isnan(found.lower[1]).all() and not found.above[:, 1].any()
    assert found.above[0, [2, 3, 4]].all()
    # 1 / (1 + 18) is above 5 %
    assert not compare_all(values, drawn[:, :18]).above.any()
    assert np.isnan(compare_all(values[:1], drawn[:1]).lower).all()


def test_few_questions_widen_intervals(world):
    reach = [compare_all(*world, n).critical for n in (np.inf, 1000, 30, 5)]
    assert reach == sorted(reach) and reach[1] < 1.01 * reach[0] and reach[3] > 2 * reach[0]


def test_equal_estimators_differ_in_few_worlds():
    """The paper's marks call one of ten equal estimators worse in almost every world."""
    found = level(
        EstimatorWorld("delta0_balanced", INDEPENDENT), 10, n_worlds=300, n_replicates=199
    )
    # 5 % of 300 worlds have a standard error of 1.3 %
    assert 0.01 <= found["simultaneous"] <= 0.09
    assert found["marks"] > 0.5 and found["holm"] > 0.15

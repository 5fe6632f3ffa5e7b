"""Δ_K next to a control, against hand-computed values, a slow loop and known truth."""

import numpy as np
import pytest

from benchmarks.controls import NextToControl, shares
from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.control import compare_with_control, fieller
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings

STATES = ("base", "changed", "repeated")
SETTINGS = {"min_direction": 1, "n_replicates": 200, "seed": 0}


def answers_of(correct, confidence):
    """Return answers of the base, the changed checkpoint and the base asked again."""
    n = len(correct[0])
    names = np.array([f"q{number:03}" for number in range(n)], object)
    runs = {Series("quiz", "e", 0): np.array(confidence, float)}
    return AnswerArrays(STATES, names, np.array(correct, np.int8), runs, np.arange(n))


def compare_only_estimator(answers, **settings):
    """Return Δ_K and AUC_K of the only estimator."""
    change, control = (
        contrast_sets(
            answers.correct, STATES, EvaluationSettings(min_contrast=1, pairs=[("base", later)])
        )
        for later in STATES[1:]
    )
    comparison = compare_with_control(
        Aligned(answers, change),
        Aligned(answers, control),
        EvaluationSettings(**SETTINGS | settings),
    )
    return {metric: ratios["quiz", "e"] for metric, ratios in comparison.items()}


@pytest.fixture
def small_study():
    """Return answers with 6 gains and 4 losses by the change, 2 and 2 by the control."""
    base = [0] * 6 + [1] * 4 + [0, 0, 1, 1]
    changed = [1] * 6 + [0] * 4 + [0, 0, 1, 1]
    repeated = [0] * 6 + [1] * 4 + [1, 1, 0, 0]
    changes = [0.2, 0.2, 0.2, 0.2, 0.1, -0.1] + [-0.2, -0.2, -0.2, 0.1] + [0.0] * 4
    chance = [0.0] * 10 + [0.3, 0.3, -0.3, 0.3]
    half = np.full(14, 0.5)
    return answers_of([base, changed, repeated], [half, half + changes, half + chance])


def test_delta_k_subtracts_the_signs_of_chance_flips(small_study):
    balance = compare_only_estimator(small_study)["delta0_balanced"]
    # Signs: gains 5 of 6 follow, sum 4; losses 3 of 4 follow, sum 2. Control: +1 +1 +1 −1 = 2
    # in both directions, 1 in each. ((4 − 1) / 6 + (2 − 1) / 4) / 2 = .375
    assert balance.excess.value == pytest.approx(((4 - 1) / 6 + (2 - 1) / 4) / 2)
    # Two flips of each direction are chance: ((4 − 1) / (6 − 2) + (2 − 1) / (4 − 2)) / 2
    assert balance.dividend.value / balance.divisor.value == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_the_corrected_change_auc_equals_a_loop_over_pairs(small_study):
    order = compare_only_estimator(small_study)["change_auc"]
    gains, losses = [0.2] * 4 + [0.1, -0.1], [-0.2] * 3 + [0.1]
    control = [0.3, 0.3, 0.3, -0.3]  # towards gained, and mirrored towards lost

    def area(up, down):
        return np.mean([(u > d) + (u == d) / 2 for u in up for d in down])

    a, b = 2 / 6, 2 / 4
    mirror = [-move for move in control]
    expected = area(gains, losses) - a * area(control, losses) - b * area(gains, mirror)
    expected += a * b * area(control, mirror)
    assert order.dividend.value == pytest.approx(expected)
    assert order.divisor.value == pytest.approx((1 - a) * (1 - b))
    assert order.excess.value == pytest.approx(expected - (1 - a) * (1 - b) / 2)


def test_a_control_with_fewer_questions_is_scaled_up(small_study):
    """The control answers half of the questions, so each of the flips counts twice."""
    correct = small_study.correct.copy()
    correct[2, :7] = -1
    balance = compare_only_estimator(small_study._replace(correct=correct))["delta0_balanced"]
    # 14 questions of the change, 7 of the control: two of 4 in each direction become 4
    assert balance.excess.value == pytest.approx(((4 - 2) / 6 + (2 - 2) / 4) / 2)


def test_no_ratio_is_given_if_all_flips_can_be_chance(small_study):
    assert np.isnan(compare_only_estimator(small_study)["delta0_balanced"].estimate()).all()


def test_a_change_with_too_few_flips_is_not_compared(small_study):
    assert compare_only_estimator(small_study, min_direction=5) == {}


def test_fieller_intervals_are_wide_for_uncertain_denominators():
    rng = np.random.default_rng(0)
    low, high = fieller(
        Sample(1.0, 1 + rng.normal(0, 0.1, 9999), {}),
        Sample(1.0, 1 + rng.normal(0, 0.3, 9999), {}),
    )
    # Ends solve (1 − θ)² = 1.96² (.01 + .09 θ²), which is .654 θ² − 2 θ + .962 = 0.
    assert [low, high] == pytest.approx([0.595, 2.46], abs=0.06)
    assert np.isnan(
        fieller(Sample(1.0, np.ones(99), {}), Sample(0.1, rng.normal(0.1, 1, 99), {}))
    ).all()


def test_only_an_estimator_that_follows_knowledge_is_claimed_to_follow_beyond_chance():
    settings = {"studies": 60, "replicates": 200}
    ignored = shares(NextToControl(of_chance=-0.4, of_knowledge=0), **settings)
    followed = shares(NextToControl(of_chance=0.4, of_knowledge=1), **settings)
    assert ignored["difference"] > 0.3  # a plain difference of Δ₀ᵇ would be claimed
    assert ignored["delta"] <= 0.07
    assert ignored["auc"] <= 0.07
    assert followed["delta"] >= 0.95
    assert followed["mean"] == pytest.approx(1, abs=0.05)

"""Power of a planned study, against simulated studies that make the tests."""

import numpy as np
import pytest
from scipy.stats import norm, poisson

from benchmarks.planned_power import share_of_auc_claims, share_of_claims, share_of_tests
from persistcal.evaluation.power import (
    Flips,
    Guess,
    accuracy_difference,
    accuracy_power,
    auc_difference,
    delta0_difference,
    delta0_questions,
    findable,
    knowledge_difference,
)
from persistcal.evaluation.proportions import compare_accuracies

FLIPS, N = Flips(0.12, 0.08), 1500


@pytest.mark.parametrize(
    ("gained", "lost", "agreement", "ties", "m"),
    [
        (220, 38, 0.7, 0, 5),
        (60, 20, 0.6, 0, 2),
        (121, 119, 0.9, 0.2, 2),
        (220, 38, 0.7, 0.5, 2),
    ],
)
def test_80_percent_of_studies_find_the_planned_delta0(gained, lost, agreement, ties, m):
    flips = Flips(gained / 2000, lost / 2000)
    difference = delta0_difference(flips, 2000, agreement, m, ties)
    guessed = {"agreement": agreement, "ties": ties, "difference": difference}
    share = share_of_claims(flips, **guessed, m=m, studies=150)
    # Standard error of a share of 150 studies: .033. docs/validation.md has 400 studies.
    assert share == pytest.approx(0.8, abs=0.09)


def test_80_percent_of_studies_find_the_smallest_difference_of_contrast_auc():
    guess = Guess(2000, 220, 38, 0.5, 0.7, 0.65, 2)
    share = share_of_auc_claims(guess, difference=auc_difference(guess), studies=150)
    assert share == pytest.approx(0.8, abs=0.09)


@pytest.mark.parametrize(
    ("test", "counts"), [("moved", (600, 60, 25, 0.7)), ("followed", (1000, 100, 100, 0.5))]
)
def test_80_percent_of_studies_pass_the_tests_with_the_planned_auc(test, counts):
    guess = Guess(*counts, 0.7, 0.65, 2)
    auc = knowledge_difference(guess, followed=test == "followed")
    # Standard error of a share of 100 studies: .04. docs/validation.md has 300 studies.
    assert share_of_tests(guess, auc=auc, studies=100)[test] == pytest.approx(0.8, abs=0.1)


def test_a_plan_with_five_expected_regressions_promises_no_difference():
    """44 % of such studies have fewer than five regressions, P[Poisson(5) ≤ 4], and no test."""
    assert poisson.cdf(4, 5) == pytest.approx(0.44, abs=0.005)
    assert np.isnan(delta0_difference(Flips(40 / 2000, 5 / 2000), 2000, 0.5))


def test_questions_for_a_difference_and_difference_for_questions_agree():
    for flips, n in ((Flips(0.11, 0.019), 2000), (FLIPS, 500)):
        difference = delta0_difference(flips, n, 0.5)
        assert delta0_questions(flips, difference, 0.5) == pytest.approx(n, rel=0.03)
    # 220 gained and 38 lost of 2,000, agreement .7, for .1: the variance of a difference of
    # signs is 4 x .3 - .01 = 1.19, (2.8016 / .1)² x 1.19 / 4 x (1 / .11 + 1 / .019) = 14,413
    assert delta0_questions(Flips(0.11, 0.019), 0.1, 0.7) == pytest.approx(14_413, rel=0.02)
    # Estimators that agree on .7 of the signs differ by at most 2 x .3.
    assert delta0_questions(FLIPS, 0.61, 0.7) is None
    assert np.isnan(delta0_difference(Flips(0.02, 0.0025), 2000, 0.7))


def test_the_power_of_mcnemars_test_equals_the_share_of_significant_studies():
    rng, significant = np.random.default_rng(0), []
    for _ in range(1500):
        earlier = rng.random(400) < 0.5
        flip = rng.random(400) < np.where(earlier, 2 * 0.06, 2 * 0.12)
        significant.append(compare_accuracies(earlier, earlier ^ flip).p_value < 0.05)
    assert accuracy_power(Flips(0.12, 0.06), 400) == pytest.approx(
        np.mean(significant), abs=0.02
    )


def test_the_smallest_difference_of_accuracies_has_80_percent_power():
    # At an accuracy of 90 % at most 10 % can be gained, so some of 15 % flips are losses.
    for accuracy, rate in ((0.6, 0.2), (0.9, 0.15)):
        difference = accuracy_difference(accuracy, rate, 1000)
        power = accuracy_power(Flips.from_accuracy(accuracy, rate, difference), 1000)
        assert power == pytest.approx(0.8, abs=0.01)
    assert Flips.from_accuracy(0.6, 0.2, 0.1) == pytest.approx((0.15, 0.05))


def test_a_difference_that_no_study_can_find_is_refused():
    assert np.isnan(accuracy_difference(0.6, 0.01, 100))
    with pytest.raises(ValueError, match=r"No 50% of answers can flip .* guess other changes"):
        Flips.from_accuracy(0.1, 0.5)
    with pytest.raises(ValueError, match="lose 4% and gain 8% of all questions"):
        Flips.from_accuracy(0.93, 0.12, 0.04)


def test_an_impossible_guess_is_refused():
    counts, shares = (2000, 220, 38), (0.5, 0.7, 0.65)
    assert findable(Guess(*counts, *shares))[1].difference == pytest.approx(0.273, abs=5e-4)
    for wrong in (0, 0.5, np.nan, 2001):
        for flips in ((wrong, 38), (220, wrong)):
            with pytest.raises(ValueError, match="give a whole number from 1 to 2,000"):
                Guess(2000, *flips, *shares)
    with pytest.raises(ValueError, match=r"questions is 100,000,000,000; give .* 10,000,000"):
        Guess(10**11, 220, 38, *shares)
    with pytest.raises(ValueError, match="2,100 questions change, but only 2,000 are asked"):
        Guess(2000, 1100, 1000, *shares)
    for wrong in (1, 2.5, 101):
        with pytest.raises(ValueError, match=r"estimators is .* from 2 to 100"):
            Guess(*counts, *shares, wrong)
    for wrong in (0, 1, np.nan):
        with pytest.raises(ValueError, match="give a number between 0 and 1"):
            Guess(*counts, wrong, *shares[1:])
        if wrong:  # without ties
            with pytest.raises(ValueError, match=r"ties is .* between 0 and 1"):
                Guess(*counts, *shares, 2, wrong)
        with pytest.raises(ValueError, match=r"difference is .* between 0 and 1"):
            findable(Guess(*counts, *shares), wrong)


def test_the_power_of_ten_million_questions_is_calculated():
    # by the normal approximation Φ(0.0004 / √(0.2 / 10,000,000) - 1.96) = Φ(0.8684)
    power = accuracy_power(Flips(0.1002, 0.0998), 10_000_000)
    assert power == pytest.approx(norm.cdf(0.8684), abs=2e-3)

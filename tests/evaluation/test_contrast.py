import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from persistcal.evaluation.contrast import (
    _features,
    _knots,
    choose_pairs,
    condition,
    condition_by_cross_fit,
    condition_by_fit,
    condition_by_odds,
    contrast_sets,
    question_folds,
)
from persistcal.evaluation.settings import EvaluationSettings


def test_contrast_sets_by_hand():
    correct = np.array([[0, 1, 1, 0, -1], [1, 0, 1, 0, 1], [1, 1, -1, 1, 0]], np.int8)
    first, second, third = contrast_sets(correct, "abc", EvaluationSettings(min_contrast=2))
    # checkpoints 0 and 1 differ on questions 0 (gained) and 1 (lost); 4 has no first answer
    assert (first.earlier, first.later, first.questions.tolist()) == (0, 1, [0, 1])
    assert first.improvement.tolist() == [True, False]
    # 0 and 2: questions 0 and 3, both gained; 2 and 4 are unanswered by one of them
    assert (second.questions.tolist(), second.improvement.tolist()) == ([0, 3], [True, True])
    # 1 and 2: 1 gained, 3 gained, 4 lost
    assert (third.questions.tolist(), third.improvement.tolist()) == ([1, 3, 4], [1, 1, 0])
    kept = [
        pair.kept for pair in contrast_sets(correct, "abc", EvaluationSettings(min_contrast=3))
    ]
    assert kept == [False, False, True]
    [chosen] = contrast_sets(
        correct, "abc", EvaluationSettings(min_contrast=1, pairs=[("a", "c")])
    )
    assert chosen.questions.tolist() == [0, 3]


def test_odds_by_hand():
    # 0.8 against 0.6: 0.8 * 0.4 = 0.32 to 0.6 * 0.2 = 0.12, so 0.32 / 0.44
    # certainties are clamped: 1 against 0: (1 - 1e-6)² to 1e-12; 1 against 1: even
    stated = np.array([0.8, 1.0, 1.0]), np.array([0.6, 0.0, 1.0])
    earlier, later = condition(*stated, np.ones(3, bool), "odds")
    clamped = (1 - 1e-6) ** 2 / ((1 - 1e-6) ** 2 + 1e-12)
    assert earlier == pytest.approx([0.32 / 0.44, clamped, 0.5], abs=1e-15)
    assert later[0] == pytest.approx(0.12 / 0.44)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_odds_sum_to_one_and_mirrored_pairs_are_tied(pairs):
    first, second = np.array(pairs).T
    earlier, later = condition_by_odds(first, second)
    np.testing.assert_allclose(earlier + later, 1, atol=1e-15)
    mirrored = condition_by_odds(second, first)
    assert (mirrored.later == earlier).all()


def test_fit_to_a_constant_estimator_gives_the_share_of_improvements():
    # only one difference h(1) - h(0) is free, so the maximum-likelihood p' is that share
    zeros, ones = np.zeros(8), np.ones(8)
    improvement = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
    earlier, later = condition_by_fit(zeros, ones, improvement)
    np.testing.assert_allclose(later, 6 / 8, atol=1e-6)
    np.testing.assert_allclose(earlier, 2 / 8, atol=1e-6)
    # and no difference is free if all confidences are even
    half = np.full(8, 0.5)
    assert (condition_by_fit(half, half, improvement).earlier == 0.5).all()


def test_fit_is_the_constrained_optimum():
    # the problem is convex, so the Karush-Kuhn-Tucker conditions are enough: the gradient
    # is 0 where an increment is positive, and not negative where it is 0
    rng = np.random.default_rng(3)
    felt = rng.normal(size=(2, 700)) * 1.5 + np.array([[0.0], [0.4]])
    improvement = rng.random(700) < 1 / (1 + np.exp(2 * (felt[0] - felt[1])))
    first, second = 1 / (1 + np.exp(-felt))
    earlier = condition(first, second, improvement, "fitted").earlier
    knots = _knots(np.concatenate([first, second]))
    assert len(knots) == 31
    difference = _features(first, knots) - _features(second, knots)
    increments = np.linalg.lstsq(difference, logit(earlier), rcond=None)[0]
    np.testing.assert_allclose(difference @ increments, logit(earlier), atol=1e-8)
    assert increments.min() > -1e-8
    gradient = difference.T @ (earlier - ~improvement) / len(first)
    assert gradient.min() > -1e-5
    assert np.abs(gradient[increments > 1e-3]).max() < 1e-5
    assert (increments < 1e-8).any() and (increments > 1e-3).any()


def test_fit_to_separable_labels_is_certain_but_a_number():
    first, second = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.3])
    earlier, later = condition_by_fit(first, second, np.zeros(3, bool))
    assert (earlier > 0.999).all() and (later < 0.001).all()


def test_a_cross_fit_to_a_constant_estimator_by_hand():
    # Questions 0 to 5 are gained, 6 to 9 lost; folds 0 to 4 hold two each. The share of gained
    # questions in the other folds: without 0 and 5, 4 of 8; without one of each kind, 5 of 8.
    improvement = np.arange(10) < 6
    folds = np.arange(10) % 5
    earlier, later = condition_by_cross_fit(np.zeros(10), np.ones(10), improvement, folds)
    expected = np.array([4, 5, 5, 5, 5] * 2) / 8
    np.testing.assert_allclose(later, expected, atol=1e-6)
    np.testing.assert_allclose(earlier + later, 1, atol=1e-15)


def test_a_cross_fit_is_each_fold_by_the_fit_to_the_others():
    """Slowly: `h` is read off the fit to the others, question by question."""
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 700))  # with labels that no `h` separates
    improvement = rng.random(700) < 1 / (1 + np.exp(3 * (first - second)))
    pairs = first, second, improvement
    folds = question_folds(len(first))
    found = condition(*pairs, "cross_fitted", folds).earlier
    for fold in range(5):
        ours, others = folds == fold, folds != fold
        assert ours.sum() == 140
        known = [side[others] for side in pairs]
        knots = _knots(np.concatenate(known[:2]))
        difference = _features(known[0], knots) - _features(known[1], knots)
        log_odds = logit(condition_by_fit(*known).earlier)
        increments = np.linalg.lstsq(difference, log_odds, rcond=None)[0]
        h = [_features(side[ours], knots) @ increments for side in (first, second)]
        np.testing.assert_allclose(found[ours], expit(h[0] - h[1]), atol=1e-6)
        # and no label of theirs has a say in it
        flipped = np.where(ours, ~improvement, improvement)
        again = condition(first, second, flipped, "cross_fitted", folds).earlier
        assert (again[ours] == found[ours]).all()


def test_a_cross_fit_of_a_single_question_is_even():
    one = np.array([0.9]), np.array([0.2]), np.array([True])
    assert condition_by_cross_fit(*one, np.array([3])).later == 0.5
    with pytest.raises(ValueError, match="needs the folds"):
        condition(*one, "cross_fitted")


def test_features_by_hand():
    knots = np.array([0.5, 0.7, 0.8])
    # 0.6 is half of the first step; 0.9 the first whole and twice the second; 0.4 mirrors 0.6
    np.testing.assert_allclose(
        _features(np.array([0.6, 0.9, 0.4]), knots), [[0.5, 0], [1, 2], [-0.5, 0]], atol=1e-12
    )


def test_knots_by_hand():
    # 32 distances from 0.5, a 62nd apart, on either side of it: the k/31 quantile is the k-th
    away = np.arange(32) / 62
    sides = np.where(np.arange(32) % 2, 0.5 + away, 0.5 - away)
    np.testing.assert_allclose(_knots(sides), 0.5 + np.arange(31) / 62, atol=1e-12)
    # all 30 quantiles are within 1e-7 of the first
    np.testing.assert_allclose(_knots(np.array([0.2, 0.8, 0.8 + 5e-8])), [0.5, 0.8], atol=1e-7)


def test_pairs_are_chosen_by_name():
    names = ["a", "b", "c", "d"]
    assert choose_pairs("all", names) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert choose_pairs("adjacent", names) == [(0, 1), (1, 2), (2, 3)]
    assert choose_pairs("first", names) == [(0, 1), (0, 2), (0, 3)]
    # of a pair that another model has, and of one that is listed twice
    listed = [["b", "d"], ["a", "c"], ["a", "z"], ["b", "d"]]
    assert choose_pairs(listed, names) == [(0, 2), (1, 3)]
    with pytest.raises(ValueError, match=r"pairs lists \(d, b\).*earlier one first"):
        choose_pairs([["d", "b"]], names)

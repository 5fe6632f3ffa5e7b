"""Contrast sets, conditioning on a change, and pairs of checkpoints."""

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


def test_a_contrast_set_contains_the_questions_with_different_labels():
    correct = np.array([[0, 1, 1, 0, -1], [1, 0, 1, 0, 1], [1, 1, -1, 1, 0]], np.int8)
    first, second, third = contrast_sets(correct, "abc", EvaluationSettings(min_contrast=2))
    # a and b differ on questions 0 (gained) and 1 (lost). a has no answer to question 4.
    assert (first.earlier, first.later, first.questions.tolist()) == (0, 1, [0, 1])
    assert first.improvement.tolist() == [True, False]
    # a and c differ on questions 0 and 3 (gained). Questions 2 and 4 lack an answer.
    assert (second.questions.tolist(), second.improvement.tolist()) == ([0, 3], [True, True])
    # b and c differ on questions 1 and 3 (gained) and 4 (lost).
    assert (third.questions.tolist(), third.improvement.tolist()) == ([1, 3, 4], [1, 1, 0])
    kept = [
        pair.kept for pair in contrast_sets(correct, "abc", EvaluationSettings(min_contrast=3))
    ]
    assert kept == [False, False, True]
    [chosen] = contrast_sets(
        correct, "abc", EvaluationSettings(min_contrast=1, pairs=[("a", "c")])
    )
    assert chosen.questions.tolist() == [0, 3]


def test_conditioning_by_odds_equals_values_by_hand():
    # 0.8 and 0.6: odds 0.8 * 0.4 = 0.32 to 0.6 * 0.2 = 0.12, so 0.32 / 0.44. Certain
    # confidences are clamped. 1 and 0: odds (1 - 1e-6)² to 1e-12. 1 and 1: even odds.
    stated = np.array([0.8, 1.0, 1.0]), np.array([0.6, 0.0, 1.0])
    earlier, later = condition(*stated, np.ones(3, bool), "odds")
    clamped = (1 - 1e-6) ** 2 / ((1 - 1e-6) ** 2 + 1e-12)
    assert earlier == pytest.approx([0.32 / 0.44, clamped, 0.5], abs=1e-15)
    assert later[0] == pytest.approx(0.12 / 0.44)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_conditioned_odds_sum_to_one_and_are_symmetric(pairs):
    first, second = np.array(pairs).T
    earlier, later = condition_by_odds(first, second)
    np.testing.assert_allclose(earlier + later, 1, atol=1e-15)
    assert (condition_by_odds(second, first).later == earlier).all()


def test_the_fit_to_a_constant_estimator_is_the_share_of_improvements():
    # Only h(1) - h(0) is free, so the maximum-likelihood p' is the share of improvements.
    earlier_confidence, later_confidence = np.zeros(8), np.ones(8)
    improvement = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
    earlier, later = condition_by_fit(earlier_confidence, later_confidence, improvement)
    np.testing.assert_allclose(later, 6 / 8, atol=1e-6)
    np.testing.assert_allclose(earlier, 2 / 8, atol=1e-6)
    # If all confidences are 0.5, no difference is free.
    half = np.full(8, 0.5)
    assert (condition_by_fit(half, half, improvement).earlier == 0.5).all()


def test_the_fit_is_the_constrained_maximum_of_the_likelihood():
    # The problem is convex, so the Karush-Kuhn-Tucker conditions suffice: the gradient is 0
    # for positive increments, and not negative for increments of 0.
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


def test_the_fit_to_separable_labels_is_almost_certain_and_finite():
    first, second = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.3])
    earlier, later = condition_by_fit(first, second, np.zeros(3, bool))
    assert (earlier > 0.999).all() and (later < 0.001).all()


def test_the_cross_fit_to_a_constant_estimator_is_the_share_of_improvements_in_other_folds():
    # Questions 0 to 5 are gained, 6 to 9 lost. Each of five folds has two questions. Share of
    # gains in the other folds: 4 of 8 without 0 and 5; 5 of 8 without a gain and a loss.
    improvement = np.arange(10) < 6
    folds = np.arange(10) % 5
    earlier, later = condition_by_cross_fit(np.zeros(10), np.ones(10), improvement, folds)
    expected = np.array([4, 5, 5, 5, 5] * 2) / 8
    np.testing.assert_allclose(later, expected, atol=1e-6)
    np.testing.assert_allclose(earlier + later, 1, atol=1e-15)


def test_the_cross_fit_of_a_fold_uses_the_fit_to_the_other_folds():
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 700))  # labels that no `h` separates
    improvement = rng.random(700) < 1 / (1 + np.exp(3 * (first - second)))
    pairs = first, second, improvement
    folds = question_folds(len(first))
    crossed = condition(*pairs, "cross_fitted", folds).earlier
    for fold in range(5):
        in_fold, not_in_fold = folds == fold, folds != fold
        assert in_fold.sum() == 140
        training = [side[not_in_fold] for side in pairs]
        knots = _knots(np.concatenate(training[:2]))
        difference = _features(training[0], knots) - _features(training[1], knots)
        log_odds = logit(condition_by_fit(*training).earlier)
        increments = np.linalg.lstsq(difference, log_odds, rcond=None)[0]
        h = [_features(side[in_fold], knots) @ increments for side in (first, second)]
        np.testing.assert_allclose(crossed[in_fold], expit(h[0] - h[1]), atol=1e-6)
        # Labels of the fold do not influence the result.
        flipped = np.where(in_fold, ~improvement, improvement)
        crossed_flipped = condition(first, second, flipped, "cross_fitted", folds).earlier
        assert (crossed_flipped[in_fold] == crossed[in_fold]).all()


def test_the_cross_fit_of_a_single_question_is_even():
    question = np.array([0.9]), np.array([0.2]), np.array([True])
    assert condition_by_cross_fit(*question, np.array([3])).later == 0.5
    with pytest.raises(ValueError, match="needs the folds"):
        condition(*question, "cross_fitted")


def test_features_of_the_fit_are_steps_between_knots_and_antisymmetric():
    knots = np.array([0.5, 0.7, 0.8])
    # 0.6: half of the first step. 0.9: the first step and twice the second. 0.4 mirrors 0.6.
    np.testing.assert_allclose(
        _features(np.array([0.6, 0.9, 0.4]), knots), [[0.5, 0], [1, 2], [-0.5, 0]], atol=1e-12
    )


def test_knots_are_quantiles_of_the_distance_from_one_half():
    # 32 distances from 0.5 in steps of 1/62, on alternating sides: the k/31 quantile is k/62.
    away = np.arange(32) / 62
    sides = np.where(np.arange(32) % 2, 0.5 + away, 0.5 - away)
    np.testing.assert_allclose(_knots(sides), 0.5 + np.arange(31) / 62, atol=1e-12)
    # All quantiles are within 1e-7 of the first, so they are merged.
    np.testing.assert_allclose(_knots(np.array([0.2, 0.8, 0.8 + 5e-8])), [0.5, 0.8], atol=1e-7)


def test_pairs_of_checkpoints_can_be_all_adjacent_first_or_listed():
    names = ["a", "b", "c", "d"]
    assert choose_pairs("all", names) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert choose_pairs("adjacent", names) == [(0, 1), (1, 2), (2, 3)]
    assert choose_pairs("first", names) == [(0, 1), (0, 2), (0, 3)]
    # Pairs of other models and repetitions are ignored.
    listed = [["b", "d"], ["a", "c"], ["a", "z"], ["b", "d"]]
    assert choose_pairs(listed, names) == [(0, 2), (1, 3)]
    with pytest.raises(ValueError, match=r"pairs lists \(d, b\).*earlier one first"):
        choose_pairs([["d", "b"]], names)

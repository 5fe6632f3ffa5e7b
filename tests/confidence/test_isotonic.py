"""Both isotonic calibrators against literal, slow ones."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from isotonic_by_hand import pool_adjacent_violators, slowly_interpolated

from persistcal.confidence.isotonic import Calibrator, apply, fit_isotonic, fit_isotonic_merged

FITS = [fit_isotonic, fit_isotonic_merged]
# few levels, so that there are ties; and any number
levels = st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0]) | st.floats(0, 1)
answers = st.lists(st.tuples(levels, st.integers(0, 1)), min_size=1, max_size=30)


@settings(deadline=None, max_examples=300)
@given(answers)
@example([(0.1, 1), (0.1, 0), (0.1, 0), (0.1, 1), (0.7, 1)])
@example([(1.0, 0), (1.0, 1), (0.0, 1), (0.0, 0)])
def test_released_knots_are_those_of_the_literal_procedure(pairs):
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic(confidence, correct)
    expected = pool_adjacent_violators(confidence.tolist(), correct.tolist())
    np.testing.assert_allclose(np.transpose(calibrator), expected, atol=1e-12)
    assert (np.diff(calibrator.confidence) >= 0).all()
    assert (np.diff(calibrator.probability) >= 0).all()


@settings(deadline=None, max_examples=200)
@given(answers, st.lists(levels, min_size=1, max_size=8))
def test_released_map_is_the_literal_one_also_where_knots_coincide(pairs, asked):
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic(confidence, correct)
    knots = list(zip(*calibrator, strict=True))
    at = [*asked, *confidence]
    expected = [slowly_interpolated(knots, p) for p in at]
    np.testing.assert_allclose(apply(calibrator, at), expected, atol=1e-9)


def test_of_knots_at_one_confidence_the_last_counts_and_the_line_goes_to_the_first():
    """As NumPy's interpolation does there, undocumented."""
    calibrator = Calibrator(np.array([0, 0.4, 0.4, 0.4, 1]), np.array([0, 0.2, 0.5, 0.6, 1]))
    # halfway to (0.4, 0.2); at 0.4 the last one; a third of the way from (0.4, 0.6) to (1, 1)
    at = [0.2, 0.4, 0.6]
    np.testing.assert_allclose(apply(calibrator, at), [0.1, 0.6, 0.6 + 0.4 / 3])
    # however many are asked for, by slopes computed beforehand or not, and in any order
    np.testing.assert_allclose(apply(calibrator, at[::-1] * 40), [0.6 + 0.4 / 3, 0.6, 0.1] * 40)
    for two in ([0, 0, 1, 1], [0, 0, 0, 1, 1, 1]):
        steps = Calibrator(np.array(two, float), np.linspace(0.1, 0.9, len(two)))
        assert apply(steps, [1.0])[0] == 0.9
        assert apply(steps, [0.0])[0] == steps.probability[two.count(0) - 1]


def test_released_knots_by_hand():
    # in order of confidence: 0 | 1 0 pooled to 1/2, with the next 0 to 1/3 | 1 | 1
    confidence, correct = [0.9, 0.1, 0.4, 0.6, 0.8, 0.5], [1, 0, 1, 0, 1, 0]
    calibrator = fit_isotonic(confidence, correct)
    np.testing.assert_allclose(calibrator.confidence, [0, 0.1, 0.5, 0.8, 0.9, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0, 1 / 3, 1, 1, 1])
    # between 0.8 and 0.9 the map is flat: two answers there are tied, unlike before
    assert apply(calibrator, [0.82]) == apply(calibrator, [0.88]) == 1
    merged = fit_isotonic_merged(confidence, correct)
    np.testing.assert_allclose(merged.confidence, [0, 0.1, 0.5, 0.85, 1])
    low, high = apply(merged, [0.82, 0.84])
    assert low < high


def test_equal_shares_stay_apart():
    # 1 0 | 1 0: two blocks of 1/2, flat between their means 0.15 and 0.35
    confidence, correct = [0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0]
    calibrator = fit_isotonic(confidence, correct)
    np.testing.assert_allclose(calibrator.confidence, [0, 0.15, 0.35, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0.5, 0.5, 1])
    assert fit_isotonic_merged(confidence, correct).confidence == pytest.approx([0, 0.25, 1])


def test_equal_confidences_count_in_the_order_given():
    """0 before 1 is no violation, and the last knot counts; 1 before 0 is one."""
    assert apply(fit_isotonic([0.5, 0.5], [0, 1]), [0.5])[0] == 1
    assert apply(fit_isotonic([0.5, 0.5], [1, 0]), [0.5])[0] == 0.5
    # stable also where NumPy's default sort is not: 100 ties, only the last of them wrong
    many = fit_isotonic([0.5] * 100, [1] * 99 + [0])
    np.testing.assert_allclose(np.transpose(many), [(0, 0), (0.5, 0.99), (1, 1)])
    assert len(fit_isotonic([0.5] * 100, [0] + [1] * 99).confidence) == 102


def test_twenty_thousand_answers_take_well_under_a_second():
    rng = np.random.default_rng(0)
    for confidence in (rng.random(20_000), rng.integers(0, 30, 20_000) / 29):
        correct = rng.random(20_000) < confidence
        start = time.process_time()
        fit_isotonic(confidence, correct)
        assert time.process_time() - start < 0.5


def test_merged_knots_by_hand():
    # labels in order of confidence: 0 | 1 0 pooled to 1/2 | 1 1
    calibrator = fit_isotonic_merged([0.9, 0.1, 0.4, 0.6, 0.8], [1, 0, 1, 0, 1])
    # means of the blocks' confidences: 0.1, (0.4 + 0.6) / 2, (0.8 + 0.9) / 2; and both ends
    np.testing.assert_allclose(calibrator.confidence, [0, 0.1, 0.5, 0.85, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0, 0.5, 1, 1])
    # halfway between the knots (0.5, 0.5) and (0.85, 1)
    assert apply(calibrator, [0.675])[0] == pytest.approx(0.75)


def test_ends_are_not_added_where_there_are_knots():
    calibrator = fit_isotonic_merged([0, 0, 1, 1], [0, 1, 1, 1])
    assert calibrator.confidence.tolist() == [0, 1]
    assert calibrator.probability.tolist() == [0.5, 1]
    released = fit_isotonic([0, 0, 1, 1], [0, 1, 1, 1])
    assert released.confidence.tolist() == [0, 0, 1, 1]
    assert released.probability.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("fit", FITS)
def test_no_answers_is_an_error(fit):
    with pytest.raises(ValueError, match="there are none"):
        fit([], [])


def max_min(confidence, correct):
    """Fitted value of each confidence: the max over starts of the min over ends of means."""
    labels = [correct[confidence == level] for level in np.unique(confidence)]
    n = len(labels)
    return [
        max(
            min(np.mean(np.concatenate(labels[start:stop])) for stop in range(i + 1, n + 1))
            for start in range(i + 1)
        )
        for i in range(n)
    ]


@settings(deadline=None)
@given(answers)
@example([(0.0, 1), (1.0, 1), (2.220446049250313e-16, 0)])
@example([(0.0, 0), (1.0, 0), (0.9999999999999999, 0)])
def test_merged_is_a_non_decreasing_map_through_the_blocks_of_isotonic_regression(pairs):
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic_merged(confidence, correct)
    mapped = apply(calibrator, np.linspace(0, 1, 101))
    assert (np.diff(mapped) >= -1e-12).all()
    assert 0 <= mapped.min() and mapped.max() <= 1
    blocks = set(np.round(max_min(confidence, correct), 12))
    assert blocks | {0, 1} == set(calibrator.probability.round(12)) | {0, 1}
    assert len(calibrator.probability) <= len(blocks) + 2

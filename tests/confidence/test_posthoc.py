import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from persistcal.confidence.posthoc import apply, fit_isotonic

answers = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=25)


def test_knots_by_hand():
    # labels in order of confidence: 0 | 1 0 pooled to 1/2 | 1 1
    calibrator = fit_isotonic([0.9, 0.1, 0.4, 0.6, 0.8], [1, 0, 1, 0, 1])
    # means of the blocks' confidences: 0.1, (0.4 + 0.6) / 2, (0.8 + 0.9) / 2; and both ends
    np.testing.assert_allclose(calibrator.confidence, [0, 0.1, 0.5, 0.85, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0, 0.5, 1, 1])
    # halfway between the knots (0.5, 0.5) and (0.85, 1)
    assert apply(calibrator, [0.675])[0] == pytest.approx(0.75)


def test_ends_are_not_added_where_there_are_knots():
    calibrator = fit_isotonic([0, 0, 1, 1], [0, 1, 1, 1])
    assert calibrator.confidence.tolist() == [0, 1]
    assert calibrator.probability.tolist() == [0.5, 1]


def test_no_answers_is_an_error():
    with pytest.raises(ValueError, match="there are none"):
        fit_isotonic([], [])


def slow_isotonic(confidence, correct):
    """Fitted value of each confidence: the max over starts of the min over ends of means."""
    levels = np.unique(confidence)
    labels = [correct[confidence == level] for level in levels]
    n = len(levels)
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
def test_is_a_non_decreasing_map_through_the_blocks_of_isotonic_regression(pairs):
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic(confidence, correct)
    grid = np.linspace(0, 1, 101)
    mapped = apply(calibrator, grid)
    assert (np.diff(mapped) >= -1e-12).all()
    assert 0 <= mapped.min() and mapped.max() <= 1
    blocks = set(np.round(slow_isotonic(confidence, correct), 12))
    assert blocks | {0, 1} == set(calibrator.probability.round(12)) | {0, 1}
    assert len(calibrator.probability) <= len(blocks) + 2

"""Calibrators against literal and general slow ones, and by hand."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from isotonic_by_hand import pool_adjacent_violators, slowly_interpolated
from scipy.optimize import minimize
from scipy.special import expit, logit

from persistcal.confidence.calibration import (
    METHODS,
    calibrate,
    fit_isotonic,
    fit_isotonic_merged,
)

# few levels, so that there are ties; and any number
levels = st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0]) | st.floats(0, 1)
answers = st.lists(st.tuples(levels, st.integers(0, 1)), min_size=1, max_size=30)


@settings(deadline=None, max_examples=200)
@given(answers, st.lists(levels, min_size=1, max_size=8))
@example([(0.1, 1), (0.1, 0), (0.1, 0), (0.1, 1), (0.7, 1)], [0.1])
@example([(1.0, 0), (1.0, 1), (0.0, 1), (0.0, 0)], [0.0, 1.0])
def test_released_map_is_that_of_the_literal_procedure(pairs, asked):
    """Its knots, and the line through them, also where they coincide."""
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic(confidence, correct)
    expected = pool_adjacent_violators(confidence.tolist(), correct.tolist())
    np.testing.assert_allclose(np.transpose(calibrator), expected, atol=1e-12)
    assert (np.diff(calibrator, axis=1) >= 0).all()
    knots = list(zip(*calibrator, strict=True))
    at = [*asked, *confidence]
    expected = [slowly_interpolated(knots, p) for p in at]
    np.testing.assert_allclose(calibrator(at), expected, atol=1e-9)


def test_isotonic_knots_by_hand():
    # in order of confidence: 0 | 1 0 pooled to 1/2, with the next 0 to 1/3 | 1 | 1
    confidence, correct = [0.9, 0.1, 0.4, 0.6, 0.8, 0.5], [1, 0, 1, 0, 1, 0]
    calibrator = fit_isotonic(confidence, correct)
    np.testing.assert_allclose(calibrator.confidence, [0, 0.1, 0.5, 0.8, 0.9, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0, 1 / 3, 1, 1, 1])
    # between 0.8 and 0.9 the map is flat: two answers there are tied, unlike before
    assert calibrator([0.82]) == calibrator([0.88]) == 1
    merged = fit_isotonic_merged(confidence, correct)
    # means of the blocks' confidences: 0.1, (0.4 + 0.5 + 0.6) / 3, (0.8 + 0.9) / 2
    np.testing.assert_allclose(merged.confidence, [0, 0.1, 0.5, 0.85, 1])
    # between (0.5, 1/3) and (0.85, 1): half way 2/3
    assert merged([0.675])[0] == pytest.approx(2 / 3)
    # all pooled, at (0.2 + 0.2 + 0.5) / 3
    tied = fit_isotonic_merged([0.2, 0.2, 0.5], [1, 1, 0])
    np.testing.assert_allclose(np.transpose(tied), [(0, 0), (0.3, 2 / 3), (1, 1)])
    ends = fit_isotonic_merged([0, 0, 1, 1], [0, 1, 1, 1])  # where there are knots
    assert np.transpose(ends).tolist() == [[0, 0.5], [1, 1]]


def test_equal_confidences_count_in_the_order_given():
    """0 before 1 is no violation, and the last knot counts; 1 before 0 is one."""
    assert fit_isotonic([0.5, 0.5], [0, 1])([0.5])[0] == 1
    assert fit_isotonic([0.5, 0.5], [1, 0])([0.5])[0] == 0.5
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


@pytest.mark.parametrize("fit", [fit_isotonic, fit_isotonic_merged])
def test_no_answers_is_an_error(fit):
    with pytest.raises(ValueError, match="no answers were given"):
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
    mapped = calibrator(np.linspace(0, 1, 101))
    assert (np.diff(mapped) >= -1e-12).all()
    assert 0 <= mapped.min() and mapped.max() <= 1
    blocks = set(np.round(max_min(confidence, correct), 12))
    assert blocks | {0, 1} == set(calibrator.probability.round(12)) | {0, 1}
    assert len(calibrator.probability) <= len(blocks) + 2


# Logistic ones ---------------------------------------------------------------------------

# Of each method the bounds of its parameters, and its a, b and c of these
PARAMETRIC = {
    "platt": ([(0, None), (None, None)], lambda a, c: (a, a, c)),
    "temperature": ([(0, None)], lambda a: (a, a, 0)),
    "beta": ([(0, None), (0, None), (None, None)], lambda *abc: abc),
}
USUAL, TURNED = (0.5, 0.5, -1.0), (-1.0, -1.0, 0.4)


def mapped(parameters, p):
    a, b, c = parameters
    return expit(a * np.log(p) - b * np.log(1 - p) + c)


@pytest.mark.parametrize(
    ("method", "true"),
    [
        *((method, true) for method in PARAMETRIC for true in (USUAL, TURNED)),
        *(("beta", true) for true in [(-0.5, 1.0, 0.3), (1.0, -0.4, 0.0)]),
    ],
)
def test_maximum_likelihood_of_what_never_turns_the_order_round(method, true):
    """Against a general solver with bounds, from several starts."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 500)
    right = rng.random(500) < mapped(true, p)
    bounds, abc = PARAMETRIC[method]

    def loss(values):
        x = mapped(abc(*values), p).clip(1e-12, 1 - 1e-12)
        return -np.mean(np.where(right, np.log(x), np.log(1 - x)))

    starts = [[start] * len(bounds) for start in (0.1, 1.0)]
    best = min((minimize(loss, s, bounds=bounds) for s in starts), key=lambda found: found.fun)
    ours = calibrate(method, p, right, p)
    np.testing.assert_allclose(ours, mapped(abc(*best.x), p), atol=2e-3)
    assert (np.diff(ours[np.argsort(p)]) >= -1e-12).all()


def test_platt_by_hand():
    # 1 of 4 is right at 0.2, 3 of 4 at 0.8: two levels, which a line through both fits
    p = np.repeat([0.2, 0.8], 4)
    ours = calibrate("platt", p, [1, 0, 0, 0, 1, 1, 1, 0], [0.2, 0.5, 0.8])
    np.testing.assert_allclose(ours, [0.25, 0.5, 0.75], atol=1e-4)
    # the slope is logit(0.75) / logit(0.8), which is 1 / T as well
    warm = METHODS["temperature"](p, [1, 0, 0, 0, 1, 1, 1, 0])
    assert warm.a == pytest.approx(logit(0.75) / logit(0.8), rel=1e-4)


@pytest.mark.parametrize("method", PARAMETRIC)
def test_certain_and_tied_confidences(method):
    stated, right = [0, 0, 1, 1, 1, 0.5, 0.5], [0, 1, 1, 1, 0, 1, 0]
    ours = calibrate(method, stated, right, [0, 0.5, 0.5, 1])
    assert ((ours > 0) & (ours < 1)).all() and ours[1] == ours[2]
    assert (np.diff(ours) >= 0).all()
    constant = calibrate(method, [0.7] * 4, [1, 1, 1, 0], [0.7])
    assert constant == pytest.approx(0.75, abs=1e-3)  # one level: its share of right answers


def test_labels_of_one_kind_are_refused():
    with pytest.raises(ValueError, match="of 2 2 are right; use posthoc isotonic"):
        calibrate("beta", [0.1, 0.2], [1, 1], [0.5])

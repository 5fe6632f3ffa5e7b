"""Calibrators, against slow implementations and values by hand."""

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
def test_the_isotonic_map_equals_the_literal_procedure_of_the_release(pairs, queries):
    """Compare the knots and the interpolation, also at ties."""
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic(confidence, correct)
    expected = pool_adjacent_violators(confidence.tolist(), correct.tolist())
    np.testing.assert_allclose(np.transpose(calibrator), expected, atol=1e-12)
    assert (np.diff(calibrator, axis=1) >= 0).all()
    knots = list(zip(*calibrator, strict=True))
    points = [*queries, *confidence]
    expected = [slowly_interpolated(knots, p) for p in points]
    np.testing.assert_allclose(calibrator(points), expected, atol=1e-9)


def test_isotonic_knots_equal_values_by_hand():
    # in order of confidence: 0 | 1 0 pooled to 1/2, with the next 0 to 1/3 | 1 | 1
    confidence, correct = [0.9, 0.1, 0.4, 0.6, 0.8, 0.5], [1, 0, 1, 0, 1, 0]
    calibrator = fit_isotonic(confidence, correct)
    np.testing.assert_allclose(calibrator.confidence, [0, 0.1, 0.5, 0.8, 0.9, 1])
    np.testing.assert_allclose(calibrator.probability, [0, 0, 1 / 3, 1, 1, 1])
    # The map is flat between 0.8 and 0.9, so answers there become tied.
    assert calibrator([0.82]) == calibrator([0.88]) == 1
    merged = fit_isotonic_merged(confidence, correct)
    # means of the blocks' confidences: 0.1, (0.4 + 0.5 + 0.6) / 3, (0.8 + 0.9) / 2
    np.testing.assert_allclose(merged.confidence, [0, 0.1, 0.5, 0.85, 1])
    # between (0.5, 1/3) and (0.85, 1): half way 2/3
    assert merged([0.675])[0] == pytest.approx(2 / 3)
    # all pooled, at (0.2 + 0.2 + 0.5) / 3
    tied = fit_isotonic_merged([0.2, 0.2, 0.5], [1, 1, 0])
    np.testing.assert_allclose(np.transpose(tied), [(0, 0), (0.3, 2 / 3), (1, 1)])
    # Blocks at 0 and 1 replace the end points.
    ends = fit_isotonic_merged([0, 0, 1, 1], [0, 1, 1, 1])
    assert np.transpose(ends).tolist() == [[0, 0.5], [1, 1]]


def test_equal_confidences_are_pooled_in_the_order_given():
    """Label 0 before label 1 keeps two knots; label 1 before label 0 violates the order."""
    assert fit_isotonic([0.5, 0.5], [0, 1])([0.5])[0] == 1
    assert fit_isotonic([0.5, 0.5], [1, 0])([0.5])[0] == 0.5
    # 100 ties, which NumPy's default sort would reorder; only the last answer is wrong.
    stable = fit_isotonic([0.5] * 100, [1] * 99 + [0])
    np.testing.assert_allclose(np.transpose(stable), [(0, 0), (0.5, 0.99), (1, 1)])
    assert len(fit_isotonic([0.5] * 100, [0] + [1] * 99).confidence) == 102


def test_twenty_thousand_answers_are_calibrated_in_half_a_second():
    rng = np.random.default_rng(0)
    for confidence in (rng.random(20_000), rng.integers(0, 30, 20_000) / 29):
        correct = rng.random(20_000) < confidence
        start = time.process_time()
        fit_isotonic(confidence, correct)
        assert time.process_time() - start < 0.5


@pytest.mark.parametrize("fit", [fit_isotonic, fit_isotonic_merged])
def test_a_calibrator_without_answers_is_refused(fit):
    with pytest.raises(ValueError, match="no answers were given"):
        fit([], [])


def max_min(confidence, correct):
    """Return fitted values by the formula: max over starts of the min over ends of means."""
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
def test_the_merged_map_never_falls_and_passes_the_blocks_of_isotonic_regression(pairs):
    confidence, correct = np.array(pairs, float).T
    calibrator = fit_isotonic_merged(confidence, correct)
    values = calibrator(np.linspace(0, 1, 101))
    assert (np.diff(values) >= -1e-12).all()
    assert 0 <= values.min() and values.max() <= 1
    blocks = set(np.round(max_min(confidence, correct), 12))
    assert blocks | {0, 1} == set(calibrator.probability.round(12)) | {0, 1}
    assert len(calibrator.probability) <= len(blocks) + 2


# Logistic ones ---------------------------------------------------------------------------

# For each method: bounds of the parameters, and the map's a, b and c as a function of them
PARAMETRIC = {
    "platt": ([(0, None), (None, None)], lambda a, c: (a, a, c)),
    "temperature": ([(0, None)], lambda a: (a, a, 0)),
    "beta": ([(0, None), (0, None), (None, None)], lambda *abc: abc),
}
USUAL, TURNED = (0.5, 0.5, -1.0), (-1.0, -1.0, 0.4)


def beta_map(parameters, p):
    a, b, c = parameters
    return expit(a * np.log(p) - b * np.log(1 - p) + c)


@pytest.mark.parametrize(
    ("method", "true"),
    [
        *((method, true) for method in PARAMETRIC for true in (USUAL, TURNED)),
        *(("beta", true) for true in [(-0.5, 1.0, 0.3), (1.0, -0.4, 0.0)]),
    ],
)
def test_logistic_calibrators_maximise_the_likelihood_among_increasing_maps(method, true):
    """A general solver with bounds, started at several points, finds the same optimum."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 500)
    correct = rng.random(500) < beta_map(true, p)
    bounds, abc = PARAMETRIC[method]

    def loss(values):
        likelihood = beta_map(abc(*values), p).clip(1e-12, 1 - 1e-12)
        return -np.mean(np.where(correct, np.log(likelihood), np.log(1 - likelihood)))

    starts = [[start] * len(bounds) for start in (0.1, 1.0)]
    best = min((minimize(loss, x, bounds=bounds) for x in starts), key=lambda fit: fit.fun)
    calibrated = calibrate(method, p, correct, p)
    np.testing.assert_allclose(calibrated, beta_map(abc(*best.x), p), atol=2e-3)
    assert (np.diff(calibrated[np.argsort(p)]) >= -1e-12).all()


def test_platt_and_temperature_equal_values_by_hand():
    # 1 of 4 answers is correct at 0.2 and 3 of 4 at 0.8. A line fits two levels exactly.
    p = np.repeat([0.2, 0.8], 4)
    calibrated = calibrate("platt", p, [1, 0, 0, 0, 1, 1, 1, 0], [0.2, 0.5, 0.8])
    np.testing.assert_allclose(calibrated, [0.25, 0.5, 0.75], atol=1e-4)
    # slope = 1 / T = logit(0.75) / logit(0.8)
    scaled = METHODS["temperature"](p, [1, 0, 0, 0, 1, 1, 1, 0])
    assert scaled.a == pytest.approx(logit(0.75) / logit(0.8), rel=1e-4)


@pytest.mark.parametrize("method", PARAMETRIC)
def test_logistic_calibrators_accept_certain_and_tied_confidences(method):
    stated, correct = [0, 0, 1, 1, 1, 0.5, 0.5], [0, 1, 1, 1, 0, 1, 0]
    calibrated = calibrate(method, stated, correct, [0, 0.5, 0.5, 1])
    assert ((calibrated > 0) & (calibrated < 1)).all() and calibrated[1] == calibrated[2]
    assert (np.diff(calibrated) >= 0).all()
    constant = calibrate(method, [0.7] * 4, [1, 1, 1, 0], [0.7])
    assert constant == pytest.approx(0.75, abs=1e-3)  # at one level, the accuracy 3 / 4


def test_a_calibrator_for_answers_that_are_all_correct_is_refused():
    with pytest.raises(ValueError, match="of 2 2 are right; use posthoc isotonic"):
        calibrate("beta", [0.1, 0.2], [1, 1], [0.5])

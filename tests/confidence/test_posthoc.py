import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from persistcal.confidence.posthoc import METHODS, apply, calibrate, fit_isotonic

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


PARAMETRIC = ["platt", "temperature", "beta"]
FREE = {"platt": [(0, None), (None, None)], "temperature": [(0, None)]}
FREE["beta"] = [(0, None), (0, None), (None, None)]


def abc(method, values):
    """The parameters a, b and c of a map that `method` may fit."""
    if method == "platt":
        return values[0], values[0], values[1]
    return (values[0], values[0], 0) if method == "temperature" else tuple(values)


def mapped(parameters, p):
    a, b, c = parameters
    return expit(a * np.log(p) - b * np.log(1 - p) + c)


def drawn(parameters, n=400_000, seed=0):
    """Confidences and labels that are as frequent as the map says."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return p, rng.random(n) < mapped(parameters, p)


@pytest.mark.parametrize(
    ("method", "true"),
    [("platt", (0.5, 0.5, -1.0)), ("temperature", (2.0, 2.0, 0.0)), ("beta", (0.4, 1.5, 0.7))],
)
def test_known_parameters_are_found_again(method, true):
    found = METHODS[method](*drawn(true))
    np.testing.assert_allclose(found, true, atol=0.08)


@pytest.mark.parametrize("method", PARAMETRIC)
@pytest.mark.parametrize(
    "true", [(0.5, 0.5, -1.0), (-0.5, 1.0, 0.3), (1.0, -0.4, 0.0), (-1.0, -1.0, 0.4)]
)
def test_maximum_likelihood_of_what_never_turns_the_order_round(method, true):
    """Against a general solver with bounds, from several starts."""
    p, right = drawn(true, n=500)

    def loss(values):
        x = mapped(abc(method, values), p).clip(1e-12, 1 - 1e-12)
        return -np.mean(np.where(right, np.log(x), np.log(1 - x)))

    bounds = FREE[method]
    starts = [[start] * len(bounds) for start in (0.1, 1.0)]
    best = min((minimize(loss, s, bounds=bounds) for s in starts), key=lambda found: found.fun)
    ours = calibrate(method, p, right, p)
    np.testing.assert_allclose(ours, mapped(abc(method, best.x), p), atol=2e-3)
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


@pytest.mark.parametrize("method", PARAMETRIC)
def test_labels_of_one_kind_are_refused(method):
    with pytest.raises(ValueError, match="of 2 2 are right; use posthoc isotonic"):
        calibrate(method, [0.1, 0.2], [1, 1], [0.5])

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from persistcal.confidence.posthoc import METHODS, calibrate

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

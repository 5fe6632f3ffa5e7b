import numpy as np
import pytest
import relplot
from hypothesis import given, settings
from hypothesis import strategies as st

from persistcal.evaluation.smooth_ece import smooth_ece
from persistcal.evaluation.smoothing import (
    FREQUENCIES_END,
    GRID,
    density_share,
    density_shares,
    fold,
    n_frequencies,
    n_grid_points,
    smoothing,
    wave_smoother,
    waves,
    wide_smoother,
)

confidences = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1e-6, 0.001, 0.5, 1 / 3, 0.9995, 1 - 1e-6, 1.0])
)
answers = st.lists(st.tuples(confidences, st.integers(0, 1)), min_size=1, max_size=60)


def columns(pairs):
    confidence, correct = np.array(pairs, float).T
    return confidence, correct


@settings(max_examples=60, deadline=None)
@given(answers)
def test_equals_relplot(pairs):
    confidence, correct = columns(pairs)
    assert smooth_ece(confidence, correct) == pytest.approx(
        relplot.smECE(confidence, correct), abs=1e-9
    )


@pytest.mark.parametrize(
    "n, sharpness", [(50, 0.2), (50, 1.0), (1200, 0.2), (1200, 1.0), (1200, 3.0), (30_000, 1.0)]
)
def test_equals_relplot_on_realistic_answers(n, sharpness):
    # 30,000 well-calibrated answers have a bandwidth below 0.01, where relplot's grid grows
    rng = np.random.default_rng(n)
    logit = 2 * rng.normal(size=n)
    correct = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    confidence = 1 / (1 + np.exp(-sharpness * logit))
    assert smooth_ece(confidence, correct) == pytest.approx(
        relplot.smECE(confidence, correct), abs=1e-9
    )


def test_equals_relplot_where_wider_smoothing_raises_the_error():
    # by truncation: a search that takes it to fall ends above the narrowest bandwidth
    confidence, correct = columns([(0.0, 0)] * 4 + [(0.5, 0)])
    assert smooth_ece(confidence, correct) == pytest.approx(
        relplot.smECE(confidence, correct), abs=1e-9
    )


@settings(max_examples=30, deadline=None)
@given(answers, st.data())
def test_weights_are_repetitions(pairs, data):
    confidence, correct = columns(pairs)
    times = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=len(pairs), max_size=len(pairs)))
    )
    times[0] = max(times[0], 1)
    weighted = smooth_ece(confidence, correct, weights=times)
    repeated = smooth_ece(np.repeat(confidence, times), np.repeat(correct, times))
    assert weighted == pytest.approx(repeated, abs=1e-9)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert weighted == pytest.approx(
        smooth_ece(confidence[order], correct[order], weights=times[order]), abs=1e-9
    )


@pytest.mark.parametrize(
    "n, sharpness, what",
    [
        (1500, 1.0, "few cosines, grid"),
        (400, 0.7, "few cosines, confidences"),
        (1500, 0.3, "wide kernels, grid"),
        (400, 0.2, "wide kernels, confidences"),
        (400, None, "tenths"),
    ],
)
def test_replicates_equal_relplot_one_by_one(n, sharpness, what):
    rng = np.random.default_rng(1)
    logit = 2 * rng.normal(size=n)
    correct = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    confidence = 1 / (1 + np.exp(-(sharpness or 1) * logit))
    if what == "tenths":
        confidence = np.round(confidence, 1)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=250).T.astype(np.uint8)
    values = smooth_ece(confidence, correct, weights=counts)
    for column in range(0, 250, 25):
        times = counts[:, column]
        expected = relplot.smECE(np.repeat(confidence, times), np.repeat(correct, times))
        assert values[column] == pytest.approx(expected, abs=1e-9)


def test_many_equal_answers_are_counted_beyond_a_byte():
    # of three kinds; each of 200 answers twice or thrice, so that their counts sum to above 255
    confidence = np.repeat([0.9, 0.9, 0.3], 200)
    correct = np.repeat([1.0, 0.0, 0.0], 200)
    counts = np.stack([np.full(600, 2), np.repeat([3, 2, 1], 200)], axis=1).astype(np.uint8)
    values = smooth_ece(confidence, correct, weights=counts)
    for value, times in zip(values, counts.T, strict=True):
        expected = relplot.smECE(np.repeat(confidence, times), np.repeat(correct, times))
        assert value == pytest.approx(expected, abs=1e-9)


def test_without_weight_it_is_undefined():
    counts = np.array([[0, 1, 3], [0, 0, 1]], np.uint8)
    values = smooth_ece([0.2, 0.7], [0, 1], weights=counts)
    assert np.isnan(values[0])
    assert values[2] == pytest.approx(
        relplot.smECE(*np.array([[0.2] * 3 + [0.7], [0, 0, 0, 1]]))
    )


@pytest.mark.parametrize("k", [2, 7, 11, 60])
def test_smoothing_only_moves_what_is_on_the_grid(k):
    # a Gaussian of height 1 / (√(2π) σ) sums to the points of a unit, wherever it is mirrored
    rows = np.asarray(smoothing(k).sum(axis=1)).ravel()
    np.testing.assert_allclose(rows, n_grid_points(k) - 1, rtol=1e-12)


@pytest.mark.parametrize("k", [11, 40, 70, 95, 300, 1024])
def test_both_halves_together_are_smoothed_as_the_whole(k):
    on_grid = np.random.default_rng(k).normal(size=GRID)
    halves = fold(on_grid)
    if k < FREQUENCIES_END:
        smoother = wave_smoother(k)
        halves = [
            half @ wave for half, wave in zip(halves, waves(n_frequencies(k)), strict=True)
        ]
    else:
        smoother = wide_smoother(k)
    even, odd = halves[0] @ smoother.even, halves[1] @ smoother.odd
    whole = smoothing(k) @ on_grid
    first = len(even)
    size = np.abs(whole).max()
    np.testing.assert_allclose((even + odd) / size, whole[:first] / size, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        (even - odd) / size, whole[::-1][:first] / size, rtol=0, atol=1e-9
    )


def test_shares_of_several_bandwidths_are_those_of_each():
    coefficients, basis = density_shares(60, 95)
    each = [density_share(k) for k in range(60, 95)]
    np.testing.assert_allclose(coefficients @ basis, each, rtol=0, atol=1e-10)

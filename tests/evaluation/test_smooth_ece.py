"""SmoothECE, against relplot."""

import numpy as np
import pytest
import relplot
from hypothesis import example, given, settings
from hypothesis import strategies as st

from persistcal.evaluation import smooth_ece as smooth_ece_module
from persistcal.evaluation.smooth_ece import CHUNK, Labellings, smooth_ece

confidences = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1e-6, 0.001, 0.5, 1 / 3, 0.9995, 1 - 1e-6, 1.0])
)
answers = st.lists(st.tuples(confidences, st.integers(0, 1)), min_size=1, max_size=60)


def columns(pairs):
    confidence, correct = np.array(pairs, float).T
    return confidence, correct


def realistic(n, sharpness, seed):
    rng = np.random.default_rng(seed)
    logit = 2 * rng.normal(size=n)
    correct = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    return 1 / (1 + np.exp(-sharpness * logit)), correct, rng


def repeated_smece(confidence, correct, n_times):
    return relplot.smECE(np.repeat(confidence, n_times), np.repeat(correct, n_times))


@settings(max_examples=60, deadline=None)
@given(answers)
# Here wider smoothing increases the error by truncation, so the error is not monotonic.
@example([(0.0, 0)] * 4 + [(0.5, 0)])
def test_smooth_ece_equals_relplot(pairs):
    confidence, correct = columns(pairs)
    expected = relplot.smECE(confidence, correct)
    assert smooth_ece(confidence, correct) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "n, sharpness", [(50, 0.2), (50, 1.0), (1200, 0.2), (1200, 1.0), (1200, 3.0), (30_000, 1.0)]
)
def test_smooth_ece_equals_relplot_on_realistic_answers(n, sharpness):
    # relplot refines its grid for bandwidths below 0.01, which 30,000 answers reach.
    confidence, correct, _ = realistic(n, sharpness, seed=n)
    expected = relplot.smECE(confidence, correct)
    assert smooth_ece(confidence, correct) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(answers, st.data())
def test_weights_of_smooth_ece_are_repetitions_in_any_order(pairs, data):
    confidence, correct = columns(pairs)
    n = len(pairs)
    n_times = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    n_times[0] = max(n_times[0], 1)
    weighted = smooth_ece(confidence, correct, weights=n_times)
    assert weighted == pytest.approx(repeated_smece(confidence, correct, n_times), abs=1e-9)
    order = np.random.default_rng(0).permutation(n)
    shuffled = smooth_ece(confidence[order], correct[order], weights=n_times[order])
    assert weighted == pytest.approx(shuffled, abs=1e-9)


@pytest.mark.parametrize(
    "n, sharpness",
    [(1500, 1.0), (400, 0.7), (1500, 0.3), (400, 0.2), (400, None)],
    ids=["narrow", "few answers", "wide", "wide, few answers", "tenths"],
)
def test_replicates_of_smooth_ece_equal_relplot(n, sharpness):
    confidence, correct, rng = realistic(n, sharpness or 1, seed=1)
    if sharpness is None:
        confidence = np.round(confidence, 1)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=CHUNK + 50).T.astype(np.uint8)
    values = smooth_ece(confidence, correct, weights=counts)
    for column in range(0, CHUNK + 50, 25):
        expected = repeated_smece(confidence, correct, counts[:, column])
        assert values[column] == pytest.approx(expected, abs=1e-9)


def test_counts_of_equal_answers_do_not_overflow_a_byte():
    # Three kinds of 200 answers, each counted up to three times: sums exceed 255.
    confidence = np.repeat([0.9, 0.9, 0.3], 200)
    correct = np.repeat([1.0, 0.0, 0.0], 200)
    counts = np.stack([np.full(600, 2), np.repeat([3, 2, 1], 200)], axis=1).astype(np.uint8)
    values = smooth_ece(confidence, correct, weights=counts)
    for value, n_times in zip(values, counts.T, strict=True):
        assert value == pytest.approx(repeated_smece(confidence, correct, n_times), abs=1e-9)


def test_smooth_ece_without_weights_is_nan():
    counts = np.array([[0, 1, 3], [0, 0, 1]], np.uint8)
    values = smooth_ece([0.2, 0.7], [0, 1], weights=counts)
    assert np.isnan(values[0])
    assert values[2] == pytest.approx(repeated_smece([0.2, 0.7], [0.0, 1.0], [3, 1]))


@pytest.mark.parametrize("small", [2**40, 0])
def test_labellings_have_the_smooth_ece_of_each_column_of_labels(monkeypatch, small):
    monkeypatch.setattr(smooth_ece_module, "SMALL", small)
    rng = np.random.default_rng(5)
    # continuous, five levels, one level, and almost calibrated answers with a narrow bandwidth
    for stated in (
        rng.random(60),
        rng.integers(0, 5, 60) / 4,
        np.full(60, 0.3),
        rng.random(4000),
    ):
        labels = rng.random((len(stated), 3)) < stated[:, None]
        found = Labellings(stated).smooth_ece(labels)
        assert found == pytest.approx([smooth_ece(stated, c) for c in labels.T], abs=1e-13)

"""Reliability curves, against relplot."""

import numpy as np
import pytest
import relplot
from relplot.diagrams import prepare_rel_diagram

from persistcal.evaluation import reliability as measured
from persistcal.evaluation.reliability import COARSEST, reliability
from persistcal.evaluation.smooth_ece import N_BANDWIDTHS, n_grid_points, place, smoothing_at


def answers(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(2, 2, size=n)
    return confidence, (rng.random(n) < confidence**1.6).astype(float)


def test_the_reliability_curve_equals_relplots():
    confidence, correct = answers()
    diagram = reliability([confidence], correct, np.arange(len(correct)))
    assert abs(diagram.smece - relplot.smECE(confidence, correct)) < 1e-9
    peer = prepare_rel_diagram(
        confidence, correct, plot_confidence_band=False, report_CE_std=False
    )
    curve = np.interp(diagram.confidence, peer["mesh"], peer["mu"].ravel())
    inside = diagram.support > 3
    assert inside.sum() > 40
    assert np.abs(diagram.accuracy - curve)[inside].max() < 0.005


def test_the_band_is_that_of_a_bootstrap_of_groups():
    """The standard deviation of the curve over 400 resamples of 150 groups of two answers."""
    rng = np.random.default_rng(5)
    confidence = np.repeat(rng.beta(2, 2, size=150), 2)
    correct = np.repeat((rng.random(150) < confidence[::2] ** 1.6).astype(float), 2)
    drawn = reliability([confidence], correct, np.arange(300) // 2)
    k = int(np.ceil(max(drawn.smece * N_BANDWIDTHS, COARSEST)))
    placed = place(confidence, np.ones(300), n_grid_points(k))
    weights = (smoothing_at(drawn.confidence, k) @ placed).toarray()
    counts = np.repeat(rng.multinomial(150, [1 / 150] * 150, size=400).T, 2, axis=0)
    curves = weights @ (counts * correct[:, None]) / (weights @ counts)
    inside = drawn.support > 10
    assert inside.sum() > 20
    reach = 1.96 * curves.std(axis=1)[inside]
    np.testing.assert_allclose((drawn.upper - drawn.accuracy)[inside], reach, rtol=0.15)
    np.testing.assert_allclose((drawn.accuracy - drawn.lower)[inside], reach, rtol=0.15)


def test_the_band_contains_the_truth_in_95_percent_of_studies():
    """The truth is the expectation of the curve given the confidences: the smoothed chances."""
    covered = []
    for seed in range(100):
        confidence, correct = answers(500, seed)
        chances = confidence**1.6
        drawn = reliability([confidence], correct, np.arange(500))
        k = int(np.ceil(max(drawn.smece * N_BANDWIDTHS, COARSEST)))
        weights = smoothing_at(drawn.confidence, k) @ place(
            confidence, np.ones(500), n_grid_points(k)
        )
        truth = weights @ chances / weights.sum(axis=1).A1
        inside = drawn.support >= 3
        covered.append(((drawn.lower <= truth) & (truth <= drawn.upper))[inside].mean())
    assert 0.93 < np.mean(covered) < 0.975


def test_several_runs_have_the_curve_and_the_support_of_their_mean():
    # All ten answers have confidence 0.5, so the support there is 10.
    stated, correct, groups = np.full(10, 0.5), np.arange(10) < 4, np.arange(10)
    single, twice = (reliability([stated] * n, correct, groups) for n in (1, 2))
    assert single.support[25] == pytest.approx(10, abs=0.1)
    for values, expected in zip(twice, single, strict=True):
        np.testing.assert_allclose(values, expected)
    right = reliability([stated], np.ones(10), groups)
    assert right.smece == pytest.approx(0.5, abs=0.1)


def test_a_point_far_from_all_answers_is_missing_without_a_warning(recwarn):
    drawn = reliability([np.zeros(50)], np.zeros(50), np.arange(50))
    assert np.isnan(drawn.accuracy[-1]) and np.isnan(drawn.upper[-1])
    assert drawn.support[-1] == 0 and drawn.accuracy[0] == 0
    assert not recwarn.list


def test_draws_of_labels_come_in_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(measured, "MOST_NUMBERS", 1000)
    blocks = list(measured._uniforms(np.arange(50) // 2, 90, 0))
    assert [block.shape for block in blocks] == [(50, 40), (50, 40), (50, 10)]

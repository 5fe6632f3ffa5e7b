"""Reliability curves, against relplot."""

import tracemalloc

import numpy as np
import pytest
import relplot
from relplot.diagrams import prepare_rel_diagram

from persistcal.evaluation import reliability as measured
from persistcal.evaluation.reliability import bootstrap_counts, reliability


def answers(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(2, 2, size=n)
    return confidence, (rng.random(n) < confidence**1.6).astype(float)


def test_the_reliability_curve_equals_relplots():
    confidence, correct = answers()
    counts = np.ones((len(correct), 1))
    diagram = reliability([confidence], correct, counts=counts)
    assert abs(diagram.smece - relplot.smECE(confidence, correct)) < 1e-9
    peer = prepare_rel_diagram(
        confidence, correct, plot_confidence_band=False, report_CE_std=False
    )
    curve = np.interp(diagram.confidence, peer["mesh"], peer["mu"].ravel())
    inside = diagram.support > 3
    assert inside.sum() > 40
    assert np.abs(diagram.accuracy - curve)[inside].max() < 0.005


def test_the_band_contains_the_curve_and_narrows_with_more_answers():
    widths = []
    for n in (500, 8000):
        confidence, correct = answers(n)
        counts = bootstrap_counts(np.arange(n), n_replicates=100, seed=1)
        drawn = reliability([confidence], correct, counts=counts)
        inside = (drawn.confidence > 0.2) & (drawn.confidence < 0.8)
        widths.append(np.mean((drawn.upper - drawn.lower)[inside]))
        assert (drawn.lower < drawn.accuracy)[inside].all()
        assert (drawn.accuracy < drawn.upper)[inside].all()
    # With 16 times as many answers, the width is about 1 / √16 = 1/4.
    assert 0.15 < widths[1] / widths[0] < 0.4


def test_several_runs_have_the_curve_and_the_support_of_their_mean():
    # All ten answers have confidence 0.5, so the support there is 10.
    stated, correct, counts = np.full(10, 0.5), np.arange(10) < 4, np.ones((10, 1))
    single, twice = (reliability([stated] * n, correct, counts=counts) for n in (1, 2))
    assert single.support[25] == pytest.approx(10, abs=0.1)
    np.testing.assert_allclose(twice.support, single.support)
    np.testing.assert_allclose(twice.accuracy, single.accuracy)
    right = reliability([stated], np.ones(10), counts=counts)
    assert right.smece == pytest.approx(0.5, abs=0.1)


def test_copies_of_answers_in_groups_leave_the_band_unchanged():
    confidence, correct = answers(100)
    alone = bootstrap_counts(np.arange(100), n_replicates=50, seed=1)
    grouped = bootstrap_counts(np.arange(300) // 3, n_replicates=50, seed=1)
    drawn = reliability([confidence], correct, counts=alone)
    three_times = reliability([np.repeat(confidence, 3)], np.repeat(correct, 3), counts=grouped)
    np.testing.assert_allclose(three_times.lower, drawn.lower)
    np.testing.assert_allclose(three_times.upper, drawn.upper)


def test_a_curve_of_many_answers_needs_little_memory():
    """Far less than 8 bytes for each answer and replicate."""
    confidence, correct = answers(n := 40_000)
    tracemalloc.start()
    counts = bootstrap_counts(np.arange(n), n_replicates=200, seed=1)
    reliability([confidence], correct, counts=counts)
    assert tracemalloc.get_traced_memory()[1] < 3 * 200 * n
    tracemalloc.stop()


def test_draws_of_labels_come_in_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(measured, "MOST_NUMBERS", 1000)
    blocks = list(measured._uniforms(np.arange(50) // 2, 90, 0))
    assert [block.shape for block in blocks] == [(50, 40), (50, 40), (50, 10)]

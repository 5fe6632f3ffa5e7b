import numpy as np
import pytest
import relplot
from relplot.diagrams import prepare_rel_diagram

from persistcal.evaluation.reliability import bootstrap_counts, reliability


def answers(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(2, 2, size=n)
    return confidence, (rng.random(n) < confidence**1.6).astype(float)


def test_the_curve_is_that_of_relplot():
    confidence, correct = answers()
    counts = np.ones((len(correct), 1))
    ours = reliability([confidence], correct, counts=counts)
    assert abs(ours.smece - relplot.smECE(confidence, correct)) < 1e-9
    theirs = prepare_rel_diagram(
        confidence, correct, plot_confidence_band=False, report_CE_std=False
    )
    curve = np.interp(ours.confidence, theirs["mesh"], theirs["mu"].ravel())
    inside = ours.support > 3
    assert inside.sum() > 40
    assert np.abs(ours.accuracy - curve)[inside].max() < 0.005


def test_the_band_lies_about_the_curve_and_shrinks_with_more_answers():
    widths = []
    for n in (500, 8000):
        confidence, correct = answers(n)
        counts = bootstrap_counts(n, n_replicates=100, seed=1)
        drawn = reliability([confidence], correct, counts=counts)
        inside = (drawn.confidence > 0.2) & (drawn.confidence < 0.8)
        widths.append(np.mean((drawn.upper - drawn.lower)[inside]))
        assert (drawn.lower < drawn.accuracy)[inside].all()
        assert (drawn.accuracy < drawn.upper)[inside].all()
    # sixteen times as many answers: a quarter of the width
    assert 0.15 < widths[1] / widths[0] < 0.4


def test_runs_weigh_the_same_and_support_is_that_of_one_run():
    # Ten answers at 0.5 alone: there they weigh 10, far away nothing.
    stated, correct, counts = np.full(10, 0.5), np.arange(10) < 4, np.ones((10, 1))
    once, twice = (reliability([stated] * n, correct, counts=counts) for n in (1, 2))
    assert once.support[25] == pytest.approx(10, abs=0.1)
    np.testing.assert_allclose(twice.support, once.support)
    np.testing.assert_allclose(twice.accuracy, once.accuracy)
    right = reliability([stated], np.ones(10), counts=counts)
    assert right.smece == pytest.approx(0.5, abs=0.1)

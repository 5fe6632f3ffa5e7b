import numpy as np
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
    confidence, correct = answers(300)
    counts = np.ones((300, 1))
    once = reliability([confidence], correct, counts=counts)
    twice = reliability([confidence, confidence], correct, counts=counts)
    np.testing.assert_allclose(twice.accuracy, once.accuracy)
    np.testing.assert_allclose(twice.support, once.support)


def test_support_counts_the_answers_that_speak():
    # Ten answers at 0.5 alone: there they weigh 10, far away nothing.
    drawn = reliability([np.full(10, 0.5)], np.ones(10), counts=np.ones((10, 1)))
    assert abs(drawn.support[25] - 10) < 0.1
    assert drawn.smece == 0.5 or abs(drawn.smece - 0.5) < 0.1

"""Bootstrap replicates, against rows that are drawn and repeated one by one."""

import numpy as np
import pytest
from resampling import SEED, draw, resampled_metrics, walk
from scipy.stats import chi2
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.draws import Component, generators
from persistcal.evaluation.evaluate import metrics_under
from persistcal.evaluation.predictions import arrange
from persistcal.evaluation.settings import EvaluationSettings

N = 90


@pytest.fixture(scope="module")
def answers():
    return arrange(make_predictions(N, absent=[4, 11, 30]), CHECKPOINTS)


@pytest.fixture(scope="module")
def pairs(answers):
    return contrast_sets(answers.correct, CHECKPOINTS, EvaluationSettings(min_contrast=5))


@pytest.fixture(scope="module")
def parts(answers, pairs):
    data = Aligned(answers, pairs)
    return [*data.parts, *(pair.part for pair in data.kept)]


@pytest.fixture(scope="module")
def counts(parts):
    return draw(parts, N, 400, SEED)


def test_drawn_counts_equal_a_walk_that_draws_question_by_question(parts, counts):
    assert len(parts) == 6
    for replicate in range(40):
        for part, drawn in zip(parts, counts, strict=True):
            taken = walk(part, N, SEED, replicate)
            expected = [taken.count(question) for question in part.questions]
            assert drawn[:, replicate].tolist() == expected
    for first_draws, drawn in zip(draw(parts, N, 3, SEED), counts, strict=True):
        assert (first_draws == drawn[:, :3]).all()
    for reach in (0, 3, 12):  # longer sequences begin with the same draws
        for continued, drawn in zip(draw(parts, N, 60, SEED, reach), counts, strict=True):
            assert (continued == drawn[:, :60]).all()


def test_counts_of_questions_are_multinomial():
    # n draws from a class of n = 20: mean 1, variance 1 - 1/n, covariance -1/n
    n, replicates = 20, 4000
    part = Component(np.arange(40), n)
    drawn = draw([part], 40, replicates, seed=1)[0][:n].astype(float)
    assert (draw([part], 40, 9, seed=2)[0][:n] != drawn[:, :9]).any(axis=0).all()
    totals = drawn.sum(axis=1)
    assert ((totals - replicates) ** 2 / replicates).sum() < chi2.ppf(0.9999, n - 1)
    covariance = np.cov(drawn)
    assert np.diag(covariance).mean() == pytest.approx(1 - 1 / n, abs=0.03)
    assert covariance[~np.eye(n, dtype=bool)].mean() == pytest.approx(-1 / n, abs=0.005)
    # Share of questions that are never drawn: (1 - 1/n)^n
    assert (drawn == 0).mean() == pytest.approx((1 - 1 / n) ** n, abs=0.01)


@pytest.fixture(scope="module")
def replicated(answers, pairs, counts):
    """Return metrics by run and replicate."""
    drawn = iter(counts)
    return metrics_under(lambda part: next(drawn), Aligned(answers, pairs), ["odds", "fitted"])


@pytest.mark.parametrize("conditioning", ["odds", "fitted"])
def test_replicates_equal_metrics_of_resampled_rows(answers, pairs, replicated, conditioning):
    runs = list(answers.confidence)
    for replicate in (0, 399):
        expected = resampled_metrics(answers, pairs, conditioning, replicate)
        for estimator, metrics in expected.items():
            rows = [row for row, run in enumerate(runs) if run[:2] == estimator]
            for (scope, metric), value in metrics.items():
                key = ("odds" if scope == "full" else conditioning, scope, metric)
                mean = replicated[key][rows, replicate].mean()
                assert mean == pytest.approx(value, abs=1e-9), key


@pytest.mark.parametrize("seed", [0, 17, 2**40 + 5, 2**100])
def test_generators_of_replicates_are_numpys(seed):
    made = [rng.random() for rng in generators(seed, range(3, 5), 1)]
    assert made == [np.random.default_rng([seed, k, 1]).random() for k in (3, 4)]

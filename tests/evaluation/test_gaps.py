"""Gaps of mean confidence and accuracy: by hand, and how often their intervals are right."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest

from persistcal.evaluation.reliability import N_GROUPS, measure_gaps


def test_the_interval_of_a_gap_is_the_exact_one_of_the_accuracy():
    """A single confidence has a single gap; with two, three intervals hold at once."""
    right = np.arange(50) < 30
    [gap] = measure_gaps([np.full(50, 0.7)], right, np.arange(50))
    low, high = binomtest(30, 50).proportion_ci(0.95)
    assert gap.value == pytest.approx(0.1)
    assert (gap.lower, gap.upper) == (pytest.approx(0.7 - high), pytest.approx(0.7 - low))
    gaps = measure_gaps([np.repeat([0.7, 0.2], 25)], right, np.arange(50), n_compared=4)
    low, high = binomtest(5, 25).proportion_ci(1 - 0.05 / 12)
    assert gaps[1].confidence == pytest.approx(0.2)
    assert (gaps[1].lower, gaps[1].upper) == (
        pytest.approx(0.2 - high),
        pytest.approx(0.2 - low),
    )


@pytest.mark.parametrize(
    ("confidence", "sizes"),
    [
        (np.arange(301) / 301, [61, 60, 60, 60, 60]),
        (np.repeat([0.1, 0.2], [5, 95]), [100]),
        (np.repeat([0.1, 0.2, 0.3], [30, 65, 5]), [30, 70]),
    ],
)
def test_answers_with_one_confidence_stay_in_one_group(confidence, sizes):
    n = len(confidence)
    gaps = measure_gaps([confidence], np.arange(n) % 2 == 0, np.arange(n))
    edges = np.cumsum([0, *sizes])
    means = [confidence[a:b].mean() for a, b in pairwise(edges)]
    assert [gap.confidence for gap in gaps[-len(means) :]] == pytest.approx(means)
    assert len(gaps) == len(means) + (len(means) > 1)


def test_questions_of_a_group_and_seeds_that_repeat_answers_count_once():
    rng = np.random.default_rng(0)
    stated = rng.random(100)
    right = rng.random(100) < stated
    single = measure_gaps([stated], right, np.arange(100))
    seeds = measure_gaps([stated] * 3, right, np.arange(100))
    assert np.array(seeds) == pytest.approx(np.array(single))
    twice = measure_gaps([np.repeat(stated, 2)], np.repeat(right, 2), np.arange(200) // 2)
    assert np.array(twice) == pytest.approx(np.array(single))


@pytest.mark.parametrize("size", [1, 4])
def test_no_interval_of_ten_exact_estimators_misses_in_most_studies(size):
    """At most 11 studies of 100 miss: P[Bin(100, .05) > 11] < .005. Groups share an answer."""
    rng, n_missed, n = np.random.default_rng(0), 0, 400
    groups = np.arange(n) // size
    for _ in range(100):
        stated = expit(1.5 * rng.normal(size=(10, n // size)))[:, groups]
        right = (rng.random(n // size) < stated[:, ::size])[:, groups]
        gaps = [
            gap
            for run, labels in zip(stated, right, strict=True)
            for gap in measure_gaps([run], labels, groups, n_compared=10)
        ]
        assert len(gaps) == 10 * (N_GROUPS + 1)
        n_missed += any(gap.is_beyond(0) for gap in gaps)
    assert n_missed <= 11

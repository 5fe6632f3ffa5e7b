"""Work in threads gives the numbers of one thread."""

import numpy as np
import pytest

from persistcal.evaluation import draws, weighted
from persistcal.evaluation.weighted import in_threads


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(weighted, "WORTH_A_THREAD", 0)


def test_results_are_in_the_order_of_the_items_and_errors_are_raised(two_threads):
    assert in_threads(lambda x: x**2, range(9), size=1) == [x**2 for x in range(9)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 // x, [1, 0, 2], size=1)


def test_draws_in_threads_equal_draws_of_one_thread(monkeypatch, two_threads):
    groups, kept = np.arange(30) // 2, np.arange(5, 25)
    several = draws.draw_sequences(40, range(200), seed=3, window=7)
    weights = draws.question_weights(groups, kept, range(200), seed=3)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    single = draws.draw_sequences(40, range(200), seed=3, window=7)
    for made, expected in zip(several[2:], single[2:], strict=True):
        assert np.array_equal(made, expected)
    assert np.array_equal(weights, draws.question_weights(groups, kept, range(200), seed=3))

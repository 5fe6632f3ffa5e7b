"""Compiled loops, against loops in Python."""

from itertools import product

import numba
import numpy as np
import pytest

from persistcal.evaluation import loops, weighted


@pytest.mark.parametrize(("dtype", "times"), [(np.uint8, 1), (np.uint8, 50), (float, 1)])
def test_counts_of_pairs_equal_a_loop_over_pairs(dtype, times):
    """With ties, more columns than are summed at once, and counts that fill 16 bits soon."""
    level = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4])
    correct = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1], bool)
    rows = np.arange(8, -1, -1)
    shape = 9, loops.AT_ONCE + 3
    weights = times * np.random.default_rng(9).poisson(1, shape).astype(dtype)
    assert weights.max() < 256
    made = loops.count_pairs(rows, correct, level, weights.astype(dtype))
    won, pairs = made[0], made[1] * made[2]
    expected_won, expected_pairs = np.zeros((2, weights.shape[1]))
    for right, wrong in product(np.flatnonzero(correct), np.flatnonzero(~correct)):
        weight = weights[rows[right]].astype(float) * weights[rows[wrong]]
        expected_pairs += weight
        expected_won += weight * (np.sign(level[right] - level[wrong]) + 1) / 2
    assert won.tolist() == expected_won.tolist()
    assert pairs.tolist() == expected_pairs.tolist()
    counted = weighted._count_pairs(level.astype(float), correct, rows, weights)
    assert [values.tolist() for values in counted] == [values.tolist() for values in made]


def test_the_auc_does_not_depend_on_the_size_at_which_loops_are_compiled(monkeypatch):
    rng = np.random.default_rng(3)
    confidence, correct = rng.integers(0, 9, 40) / 8, rng.random(40) < 0.6
    weights = rng.poisson(1, (40, 300)).astype(np.uint8)
    small = weighted.auc(confidence, correct, weights=weights)
    monkeypatch.setattr(weighted, "SMALL", 0)
    assert weighted.auc(confidence, correct, weights=weights).tolist() == small.tolist()


def test_loops_are_compiled_without_a_writable_cache(monkeypatch):
    compiled = numba.njit

    def cannot_keep(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("no locator available")
        return compiled(*arguments, **options)

    monkeypatch.setattr(numba, "njit", cannot_keep)
    assert loops._compiled(lambda x: x + 1)(1) == 2


def test_sums_of_large_counts_do_not_overflow_sixteen_bits():
    # 600 right answers above 600 wrong ones, each drawn 250 times, then both tied
    weights, rows = np.full((1200, 2), 250, np.uint8), np.arange(1200)
    correct = rows >= 600
    for level, share in ((rows, 1), (0 * rows, 0.5)):
        won, *sums = loops.count_pairs(rows, correct, level, weights)
        assert np.prod(sums, axis=0).tolist() == 2 * [(600 * 250) ** 2]
        assert won.tolist() == 2 * [share * (600 * 250) ** 2]

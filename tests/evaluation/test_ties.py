"""Ties of shares, against arithmetic with fractions, which does not round."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.ties import ROUNDING, join_ties


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3)])
def test_shapes_and_numbers_far_apart_stay(shape):
    values = np.linspace(1, 0, int(np.prod(shape))).reshape(shape)
    assert np.array_equal(join_ties(values), values)


def test_no_number_takes_the_place_of_a_missing_one():
    joined = join_ties(np.array([np.nan, 0.5, np.nan, 0.5 + 1e-15]))
    assert np.array_equal(joined, [np.nan, 0.5, np.nan, 0.5], equal_nan=True)


def test_what_differs_by_more_than_rounding_is_an_opinion():
    apart = np.array([0.5, 0.5 + 3 * ROUNDING])
    assert np.array_equal(join_ties(apart), apart)


def exact_auc(right, wrong):
    """The share of pairs in which the right one is higher, ties a half."""
    won = sum(2 * (r > w) + (r == w) for r in right for w in wrong)
    return Fraction(won, 2 * len(right) * len(wrong))


def given_one_is_right(p, q):
    return p * (1 - q) / (p * (1 - q) + q * (1 - p))


counts = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None, max_examples=60)
@given(st.lists(counts, min_size=2, max_size=20), st.data())
def test_shares_of_ten_samples_are_tied_as_fractions_are(pairs, data):
    """The later answer is right in half of the questions; each share is a sum of tenths."""
    improved = data.draw(st.permutations([i % 2 == 0 for i in range(len(pairs))]))
    shares = [[Fraction(k, 10) for k in pair] for pair in pairs]
    right, wrong, signs = [], [], []
    for (p, q), better in zip(shares, improved, strict=True):
        both = given_one_is_right(p, q), given_one_is_right(q, p)
        right.append(both[better])
        wrong.append(both[not better])
        signs.append((1 if better else -1) * ((q > p) - (q < p)))
    rows = [
        {
            "checkpoint": checkpoint,
            "question_id": f"q{number}",
            "train_dataset": "quiz",
            "estimator": "self_consistency",
            "seed": 0,
            # in any order of addition: 0.1 + 0.2 is not 0.3
            "confidence": sum([0.1] * k) if number % 2 else 1 - sum([0.1] * (10 - k)),
            "correct": improved[number] == (checkpoint == "late"),
        }
        for number, pair in enumerate(pairs)
        for checkpoint, k in zip(("early", "late"), pair, strict=True)
    ]
    metrics = evaluate(pd.DataFrame(rows), ["early", "late"], min_contrast=1)
    of = metrics[metrics["seed"] == "mean"].set_index(["conditioning", "scope", "metric"])
    found = of["value"]
    assert found["odds", "contrast", "auc"] == pytest.approx(
        float(exact_auc(right, wrong)), abs=1e-12
    )
    assert found["odds", "contrast", "delta0"] == pytest.approx(np.mean(signs), abs=1e-12)
    every = [
        (share, (improved[number] == late))
        for number, pair in enumerate(shares)
        for late, share in zip((False, True), pair, strict=True)
    ]
    full = exact_auc([s for s, ok in every if ok], [s for s, ok in every if not ok])
    assert found["odds", "full", "auc"] == pytest.approx(float(full), abs=1e-12)

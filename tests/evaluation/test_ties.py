"""Ties of shares, against arithmetic with fractions, which does not round."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_predictions import table

import persistcal
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.predictions import ROUNDING, join_ties
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.user_files import round_narrow


@pytest.mark.parametrize(
    "values", [[], [[1.0, 0.8, 0.6], [0.4, 0.2, 0.0]], [0.5, 0.5 + 3 * ROUNDING]]
)
def test_numbers_that_are_further_apart_than_rounding_stay(values):
    assert np.array_equal(join_ties(np.array(values)), values)


def test_no_number_takes_the_place_of_a_missing_one():
    joined = join_ties(np.array([np.nan, 0.5, np.nan, 0.5 + 1e-15]))
    assert np.array_equal(joined, [np.nan, 0.5, np.nan, 0.5], equal_nan=True)


def test_a_long_row_of_close_numbers_is_cut_where_it_is_wider_than_rounding():
    # 0.3, 0.6 and 0.9 of the tolerance from the first; 1.2 to 1.8; 2.1 to 2.7; and so again
    row = 0.25 + 0.3 * ROUNDING * np.arange(10)
    many = np.repeat(np.concatenate([row, row + 0.5]), 3)  # equal ones are no further step
    starts = np.array([0, 0, 0, 0, 4, 4, 4, 7, 7, 7])
    expected = np.repeat(np.concatenate([row[starts], row[starts] + 0.5]), 3)
    order = np.random.default_rng(0).permutation(len(many))
    assert np.array_equal(join_ties(many[order]), expected[order])


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
        (
            checkpoint,
            f"q{number}",
            # in any order of addition: 0.1 + 0.2 is not 0.3
            sum([0.1] * k) if number % 2 else 1 - sum([0.1] * (10 - k)),
            improved[number] == (checkpoint == "late"),
        )
        for number, pair in enumerate(pairs)
        for checkpoint, k in zip(("early", "late"), pair, strict=True)
    ]
    how = {"min_contrast": 1, "conditionings": ["odds"]}
    metrics = evaluate(table(rows), ["early", "late"], EvaluationSettings(**how)).query(
        "seed == 'mean'"
    )
    found = metrics.set_index(["scope", "metric"])["value"]
    exact = float(exact_auc(right, wrong))
    assert found["contrast", "auc"] == pytest.approx(exact, abs=1e-12)
    assert found["contrast", "delta0"] == pytest.approx(np.mean(signs), abs=1e-12)
    every = [
        (share, (improved[number] == late))
        for number, pair in enumerate(shares)
        for late, share in zip((False, True), pair, strict=True)
    ]
    full = exact_auc([s for s, ok in every if ok], [s for s, ok in every if not ok])
    assert found["full", "auc"] == pytest.approx(float(full), abs=1e-12)


@pytest.mark.parametrize("kept", [np.float16, np.float32, "Float32", np.float64])
def test_shares_come_back_from_numbers_of_fewer_bits(kept, caplog):
    caplog.set_level("INFO")
    shares = np.arange(101) / 100
    stored = pd.Series(shares).astype(kept).to_numpy()
    assert np.array_equal(round_narrow(stored, "confidence"), shares)
    digits = {"float16": 3, "float32": 6}.get(str(stored.dtype))
    said = f"confidence: {stored.dtype}, rounded to {digits} significant digits"
    assert caplog.messages == ([said] if digits else [])


@pytest.mark.parametrize(("kept", "digits"), [(np.float16, 3), (np.float32, 6)])
def test_rounding_keeps_significant_digits_as_printing_does(kept, digits):
    stored = (np.random.default_rng(0).random(300) ** 6).astype(kept)
    printed = [float(f"{float(value):.{digits}g}") for value in stored]
    assert np.allclose(round_narrow(stored, "confidence"), printed, rtol=1e-14, atol=0)


def metrics_of(draw_shares, *, n, seed, kept=np.float64, noise=0.0):
    """Metrics of shares of ten samples at two checkpoints, kept in a type and with noise."""
    rng = np.random.default_rng(seed)
    hard, frames = rng.random(n), []
    for checkpoint in ("early", "late"):
        correct, stated = draw_shares(rng, hard)
        stated = (np.round(10 * stated) / 10 + noise * rng.normal(size=n)).astype(kept)
        columns = {"confidence": stated, "correct": correct, "checkpoint": checkpoint}
        frames.append(pd.DataFrame(columns).rename_axis("question_id").reset_index())
    predictions = pd.concat(frames).assign(train_dataset="quiz", estimator="mine", seed=0)
    metrics = persistcal.evaluate(predictions, ["early", "late"], min_contrast=1)
    means = metrics[metrics["seed"] == "mean"]
    return means.set_index(["conditioning", "scope", "metric"])["value"].sort_index()


def knowing(rng, hard):
    correct = rng.random(len(hard)) < 0.5
    return correct, 0.7 * rng.random(len(hard)) + 0.3 * correct * rng.random(len(hard))


def difficulty_only(rng, hard):
    return rng.random(len(hard)) < hard, hard.clip(0.1, 0.9)


def test_shares_in_numbers_of_fewer_bits_have_the_same_metrics():
    exact = metrics_of(knowing, n=300, seed=0)
    for kept in (np.float16, np.float32):
        found = metrics_of(knowing, n=300, seed=0, kept=kept)
        pd.testing.assert_series_equal(found, exact, rtol=0, atol=1e-12)


def test_noise_below_the_numbers_of_the_file_is_no_opinion():
    of = metrics_of(difficulty_only, n=2000, seed=5, kept=np.float32, noise=1e-8)
    for conditioning in ("odds", "fitted"):
        found = of[conditioning, "contrast"]
        assert found["auc"] == 0.5
        for metric in ("delta", "delta0", "delta_balanced", "delta0_balanced"):
            assert found[metric] == 0
    # in double precision a difference of 1e-8 is there, and the fit sees the labels
    of = metrics_of(difficulty_only, n=2000, seed=5, noise=1e-8)
    assert abs(of["fitted", "contrast", "delta"]) < 1e-6

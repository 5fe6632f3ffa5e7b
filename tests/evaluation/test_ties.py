"""Ties of shares, against exact arithmetic with fractions."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measuring import evaluate
from synthetic_predictions import table

import persistcal
from persistcal.evaluation.predictions import ROUNDING, join_ties
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.user_files import round_narrow


@pytest.mark.parametrize(
    "values", [[], [[1.0, 0.8, 0.6], [0.4, 0.2, 0.0]], [0.5, 0.5 + 3 * ROUNDING]]
)
def test_numbers_that_differ_by_more_than_rounding_are_not_joined(values):
    assert np.array_equal(join_ties(np.array(values)), values)


def test_missing_numbers_stay_missing_if_ties_are_joined():
    joined = join_ties(np.array([np.nan, 0.5, np.nan, 0.5 + 1e-15]))
    assert np.array_equal(joined, [np.nan, 0.5, np.nan, 0.5], equal_nan=True)


def test_a_chain_of_close_numbers_is_cut_at_the_tolerance():
    # In units of the tolerance: 0 to 0.9 are joined with 0, 1.2 to 1.8 with 1.2, 2.1 to 2.7.
    row = 0.25 + 0.3 * ROUNDING * np.arange(10)
    chain = np.repeat(np.concatenate([row, row + 0.5]), 3)  # with equal numbers
    starts = np.array([0, 0, 0, 0, 4, 4, 4, 7, 7, 7])
    expected = np.repeat(np.concatenate([row[starts], row[starts] + 0.5]), 3)
    order = np.random.default_rng(0).permutation(len(chain))
    assert np.array_equal(join_ties(chain[order]), expected[order])


def exact_auc(right, wrong):
    """Return the share of pairs with a higher right answer; ties count a half."""
    won = sum(2 * (r > w) + (r == w) for r in right for w in wrong)
    return Fraction(won, 2 * len(right) * len(wrong))


def given_one_is_right(p, q):
    return p * (1 - q) / (p * (1 - q) + q * (1 - p))


counts = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None, max_examples=60)
@given(st.lists(counts, min_size=2, max_size=20), st.data())
def test_shares_of_ten_samples_have_the_ties_of_exact_fractions(pairs, data):
    """The later answer is right for half of the questions. Each share is a sum of tenths."""
    improved = data.draw(st.permutations([i % 2 == 0 for i in range(len(pairs))]))
    shares = [[Fraction(k, 10) for k in pair] for pair in pairs]
    right, wrong, signs = [], [], []
    for (p, q), better in zip(shares, improved, strict=True):
        conditioned = given_one_is_right(p, q), given_one_is_right(q, p)
        right.append(conditioned[better])
        wrong.append(conditioned[not better])
        signs.append((1 if better else -1) * ((q > p) - (q < p)))
    rows = [
        (
            checkpoint,
            f"q{number}",
            # Rounding differs between sums: 0.1 + 0.2 is not 0.3.
            sum([0.1] * k) if number % 2 else 1 - sum([0.1] * (10 - k)),
            improved[number] == (checkpoint == "late"),
        )
        for number, pair in enumerate(pairs)
        for checkpoint, k in zip(("early", "late"), pair, strict=True)
    ]
    settings = {"min_contrast": 1, "conditionings": ["odds"]}
    metrics = evaluate(table(rows), ["early", "late"], EvaluationSettings(**settings)).query(
        "seed == 'mean'"
    )
    values = metrics.set_index(["scope", "metric"])["value"]
    assert values["contrast", "auc"] == pytest.approx(float(exact_auc(right, wrong)), abs=1e-12)
    assert values["contrast", "delta0"] == pytest.approx(np.mean(signs), abs=1e-12)

    answers = [
        (share, (improved[number] == late))
        for number, pair in enumerate(shares)
        for late, share in zip((False, True), pair, strict=True)
    ]
    full = exact_auc(
        [share for share, is_right in answers if is_right],
        [share for share, is_right in answers if not is_right],
    )
    assert values["full", "auc"] == pytest.approx(float(full), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, "Float32", np.float64])
def test_shares_stored_in_fewer_bits_are_restored(dtype, caplog):
    caplog.set_level("INFO")
    shares = np.arange(101) / 100
    stored = pd.Series(shares).astype(dtype).to_numpy()
    assert np.array_equal(round_narrow(stored, "confidence"), shares)
    digits = {"float16": 3, "float32": 6}.get(str(stored.dtype))
    message = f"confidence: {stored.dtype}, rounded to {digits} significant digits"
    assert caplog.messages == ([message] if digits else [])


@pytest.mark.parametrize(("dtype", "digits"), [(np.float16, 3), (np.float32, 6)])
def test_restored_numbers_have_the_digits_that_printing_shows(dtype, digits):
    stored = (np.random.default_rng(0).random(300) ** 6).astype(dtype)
    printed = [float(f"{float(value):.{digits}g}") for value in stored]
    assert np.allclose(round_narrow(stored, "confidence"), printed, rtol=1e-14, atol=0)


def metrics_of(draw_shares, *, n, seed, kept=np.float64, noise=0.0):
    """Return metrics for shares of ten samples, stored in a type and with noise."""
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


def test_shares_stored_in_fewer_bits_have_the_same_metrics():
    exact = metrics_of(knowing, n=300, seed=0)
    for kept in (np.float16, np.float32):
        restored = metrics_of(knowing, n=300, seed=0, kept=kept)
        pd.testing.assert_series_equal(restored, exact, rtol=0, atol=1e-12)


def test_noise_below_the_precision_of_a_file_is_not_measured():
    metrics = metrics_of(difficulty_only, n=2000, seed=5, kept=np.float32, noise=1e-8)
    for conditioning in ("odds", "fitted"):
        values = metrics[conditioning, "contrast"]
        assert values["auc"] == 0.5
        for metric in ("delta", "delta0", "delta_balanced", "delta0_balanced"):
            assert values[metric] == 0
    # Double precision keeps the noise, which hardly changes a fitted metric.
    metrics = metrics_of(difficulty_only, n=2000, seed=5, noise=1e-8)
    assert abs(metrics["fitted", "contrast", "delta"]) < 1e-6

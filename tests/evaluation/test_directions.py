"""Balanced metrics and change AUC: by hand, against loops, and in simulated studies."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate, members, replicate_metrics
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from synthetic_predictions import CHECKPOINTS, make_predictions, table_of_arrays

from benchmarks.intervals import cell
from persistcal.evaluation import bootstrap, draws
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import from_table, to_table
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals

SETTINGS = EvaluationSettings(min_contrast=1, n_replicates=200, seed=3, conditionings=["odds"])
KEY = MetricKey("odds", "contrast", "delta0_balanced")


def predictions_of(change, improvement, estimator="e"):
    """Return predictions of two checkpoints with confidences that differ by `change`."""
    confidence = {"a": np.full(len(change), 0.5), "b": 0.5 + np.asarray(change) / 2}
    correct = {"a": ~improvement, "b": improvement}
    return table_of_arrays(confidence, correct, estimator=estimator)


def means_of(predictions):
    table = evaluate(predictions, ["a", "b"], EvaluationSettings(min_contrast=1))
    means = table[(table["seed"] == "mean") & (table["scope"] == "contrast")]
    return means.set_index(["conditioning", "metric"])["value"]


def test_balanced_replicates_equal_values_by_hand():
    signs = np.array([[1.0, 1.0, -1.0, 1.0]])
    improvement = np.array([True, True, True, False])
    weights = np.array([[1.0], [2.0], [1.0], [3.0]])
    pseudo = np.array([[0.5], [0.25], [0.25], [1.0]])
    # Gains: (1 + 2 − 1 + 0.5 − 0.25) / (4 + 0.75) = 2.25 / 4.75, centre 1 / (3 + 1).
    # Losses: (3 + 0.25 − 1) / (3 + 1.25) = 2.25 / 4.25, centre 1 / (1 + 1).
    gained = 0.25 + np.sqrt(5 / 3) * (2.25 / 4.75 - 0.25)
    lost = 0.5 + np.sqrt(3) * (2.25 / 4.25 - 0.5)
    replicates = draws.balanced_replicates(signs, improvement, weights, pseudo)
    assert replicates.item() == pytest.approx((gained + lost) / 2)
    # Pseudo-questions scale with the gaps.
    tenth = draws.balanced_replicates(signs / 10, improvement, weights, pseudo)
    assert tenth.item() == pytest.approx(replicates.item() / 10)


def test_replicates_of_the_change_auc_equal_a_loop_over_pairs():
    """Pseudo-questions are additional rows with changes of ±∞."""
    rng = np.random.default_rng(0)
    change = np.round(rng.normal(size=9), 1)
    change[:2] = 0.3, 0.3  # a tie
    improvement = np.array([True, False] * 4 + [True])
    weights, pseudo = rng.random((9, 3)), rng.random((4, 3))
    replicates = draws.change_auc_replicates(change, improvement, weights, pseudo)
    rows = [*zip(change, improvement, weights, strict=True)]
    rows += [*zip([np.inf, -np.inf, -np.inf, np.inf], [1, 1, 0, 0], pseudo, strict=True)]
    for column in range(3):
        won = pairs = 0.0
        for first, is_gain, weight in rows:
            for second, is_second_gain, second_weight in rows:
                if is_gain and not is_second_gain:
                    weight_of_pair = weight[column] * second_weight[column]
                    pairs += weight_of_pair
                    won += weight_of_pair * ((first > second) + (first == second) / 2)
        assert replicates[column] == pytest.approx(won / pairs)


def test_the_change_auc_equals_values_by_hand():
    change = np.array([0.4, 0.1, 0.2, 0.1])
    improvement = np.array([True, True, False, False])
    # Pairs (.4, .2), (.4, .1), (.1, .2), (.1, .1): right, right, wrong and a tie: 2.5 / 4
    values = means_of(predictions_of(change, improvement))
    assert values["odds", "change_auc"] == values["fitted", "change_auc"] == 2.5 / 4
    # Differences that are equal up to rounding errors are ties: .7 − .6 and .2 − .1
    frame = predictions_of(np.zeros(2), np.array([True, False]))
    frame["confidence"] = [0.6, 0.1, 0.7, 0.2]
    assert set(means_of(frame).xs("change_auc", level="metric")) == {0.5}
    gains_only = means_of(frame[frame["question_id"] == "q000"])
    assert gains_only.xs("change_auc", level="metric").isna().all()


def test_a_shift_of_all_confidences_reduces_delta0_and_not_the_change_auc():
    rng = np.random.default_rng(1)
    improvement = rng.random(400) < 0.5
    earlier = np.zeros(400)  # low enough for all confidences to rise
    moved = np.where(improvement, 1.65, -1.65) + 0.77 * rng.normal(size=400)
    metrics = {}
    for shift in (0, 1, 2, 4):
        frame = predictions_of(np.zeros(400), improvement)
        frame["confidence"] = expit(np.concatenate([earlier, earlier + moved + shift]))
        metrics[shift] = means_of(frame)["odds"]
    follows = [metrics[shift]["delta0_balanced"] for shift in (0, 1, 2, 4)]
    # Signs follow Φ(1.65 / .77) = .984 of gains without a shift, and Φ((1.65 − shift) / .77) of
    # losses.
    assert follows == pytest.approx([0.968, 0.78, 0.33, 0.0], abs=0.06)
    assert min(values["change_auc"] for values in metrics.values()) > 0.99


def test_a_single_regression_has_a_wide_interval():
    """Half of 40 gains are followed, and the only loss.

    Resampling losses separately would never vary it: the interval would be about [.35, .65].
    """
    improvement = np.arange(41) < 40
    follows = np.concatenate([np.tile([1, -1], 20), [1]])
    change = 0.2 * follows * np.where(improvement, 1, -1)
    frame = predictions_of(change, improvement)
    replicates = replicate_metrics(frame, ["a", "b"], replace(SETTINGS, min_direction=1))
    row = intervals(replicates).set_index("metric").loc["delta0_balanced"]
    assert row["value"] == 0.5 and (row["improvement"], row["regression"]) == (40, 1)
    assert row["lower_2_5pct"] < 0 < row["upper_97_5pct"]
    assert np.quantile(replicates[KEY].stratified, 0.025) > 0.3


def test_too_few_gains_or_losses_give_no_interval_and_no_test(caplog):
    rng = np.random.default_rng(2)
    improvement = np.arange(34) < 30
    change = np.where(improvement, 1, -1) * rng.random(34) / 2
    second_estimator = predictions_of(rng.normal(size=34) / 9, improvement, "f")
    rows = pd.concat([predictions_of(change, improvement), second_estimator])
    drawn = replicate_metrics(rows, ["a", "b"], replace(SETTINGS, min_direction=5))
    assert "gains 30 and loses 4 questions: fewer than 5 of either give no" in caplog.text

    table = intervals(drawn).set_index(["estimator", "metric"])
    ends = [name for name in table if "_2_5pct" in name or "_97_5pct" in name]
    tests = compare_blocks(drawn, {"both": ["e", "f"]}).set_index("metric")
    for metric in ("delta0_balanced", "delta_balanced", "change_auc"):
        assert table.loc[("e", metric), ends].isna().all()
        assert (
            table.loc[("e", metric), "value"]
            == drawn[MetricKey("odds", "contrast", metric)].values[0]
        )
        assert np.isnan(tests.loc[metric, ["lower_2_5pct", "p_value"]].astype(float)).all()
        assert tests.loc[metric, "significant"]  # the paper's mark stays as it is
    assert table.loc[("f", "delta0"), ends[:2]].notna().all()
    assert table.loc[("e", "delta0"), ends].isna().all()  # all signs are 1: it does not vary

    enough = replicate_metrics(rows, ["a", "b"], replace(SETTINGS, min_direction=4))
    assert not np.isnan(enough[KEY].draws).any()


def test_replicates_of_an_estimator_do_not_depend_on_other_estimators_or_on_memory(monkeypatch):
    predictions = make_predictions(60)
    settings = replace(SETTINGS, min_direction=1, n_replicates=7)
    replicates = replicate_metrics(predictions, CHECKPOINTS, settings)
    restored = from_table(to_table(replicates, "here"))
    row = members(replicates).index(("quiz", "own"))
    separate = replicate_metrics(predictions.query("estimator == 'own'"), CHECKPOINTS, settings)
    with_draws = {key for key, metric in replicates.items() if not np.isnan(metric.draws).any()}
    assert with_draws == {key for key in replicates if key[2] != "smece"}

    balanced = ("delta0_balanced", "delta_balanced", "change_auc")
    with_fewest = {key for key, metric in replicates.items() if metric.fewest}
    assert with_fewest == {MetricKey("odds", "contrast", metric) for metric in balanced}
    for key in with_draws:
        claims = replicates[key].draws
        np.testing.assert_allclose(separate[key].draws[0], claims[row], atol=1e-12)
        np.testing.assert_array_equal(restored[key].draws, claims)
    for key, metric in replicates.items():
        assert restored[key].fewest == metric.fewest

    weights_of_e, weights_of_f = (
        draws.pseudo_weights([e], 5, seed=3, expected=0.5) for e in (b"e", b"f")
    )
    assert (weights_of_e != weights_of_f).all()
    for memory in (1, 50_000):  # a single replicate or some at a time
        monkeypatch.setattr(bootstrap, "MEMORY", memory)
        chunked = replicate_metrics(predictions, CHECKPOINTS, settings)
        for key, metric in replicates.items():
            np.testing.assert_array_equal(chunked[key].values, metric.values)
            for chunked_values, expected in (
                (chunked[key].stratified, replicates[key].stratified),
                (chunked[key].draws, replicates[key].draws),
            ):
                np.testing.assert_allclose(chunked_values, expected, rtol=0, atol=1e-9)


def test_replicates_of_an_estimator_are_means_over_its_seeds(monkeypatch):
    """All pseudo-questions are alike here; they depend on the confidences of all seeds."""
    drawn = draws.pseudo_weights
    monkeypatch.setattr(draws, "pseudo_weights", lambda _, *args, **of: drawn([], *args, **of))
    predictions = make_predictions(60).query("estimator == 'learnt'")
    settings = replace(SETTINGS, min_direction=1, n_replicates=3)
    replicates = replicate_metrics(predictions, CHECKPOINTS, settings)
    runs = [rows.assign(seed=0) for _, rows in predictions.groupby("seed")]
    by_seed = [replicate_metrics(run, CHECKPOINTS, settings) for run in runs]
    for key, metric in replicates.items():
        mean = np.mean([single[key].draws for single in by_seed], axis=0)
        np.testing.assert_allclose(metric.draws, mean, atol=1e-12)


@pytest.mark.parametrize(("kind", "truth"), [("sign", 0.0), ("gap", 0.7), ("change AUC", 0.3)])
def test_intervals_of_balanced_metrics_contain_the_truth(kind, truth):
    """95 % of 200 studies is 190, ± 3 by chance. docs/validation.md has the whole table."""
    coverages = cell(kind, truth, (40, 2), worlds=200, replicates=200, seed=1)
    assert min(coverages["alone"], coverages["independent"], coverages["constant"]) >= 0.92
    assert coverages["alone before"] < 0.9


def test_replicates_of_full_metrics_draw_questions_regardless_of_their_labels():
    """The Brier score and AUC are recalculated for the drawn rows."""
    predictions = make_predictions(60).query("estimator == 'own'")
    settings = replace(SETTINGS, min_direction=1, n_replicates=3)
    replicates = replicate_metrics(predictions, CHECKPOINTS, settings)
    rows = predictions.assign(error=lambda p: (p["confidence"] - p["correct"]) ** 2)
    names = np.unique(rows["question_id"])
    drawn = draws.draw_sequences(len(names), range(3), seed=SETTINGS.seed).counts
    for b in range(3):
        counts = dict(zip(names, drawn[:, b].tolist(), strict=True))
        repeated = rows.loc[rows.index.repeat(rows["question_id"].map(counts))]
        brier = replicates[MetricKey("odds", "full", "brier")].draws[0, b]
        assert brier == pytest.approx(repeated["error"].mean())
        area = replicates[MetricKey("odds", "full", "auc")].draws[0, b]
        assert area == pytest.approx(roc_auc_score(repeated["correct"], repeated["confidence"]))

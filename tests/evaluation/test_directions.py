"""Metrics of gained and lost questions alike: by hand, against slow loops, and in worlds."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from synthetic_predictions import CHECKPOINTS, make_predictions, table_of_arrays

from benchmarks.intervals import cell
from persistcal.evaluation import draws
from persistcal.evaluation import replicates as replicates_module
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import from_table, replicate_metrics, to_table
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals

HOW = {"min_contrast": 1, "n_replicates": 200, "seed": 3, "conditionings": ["odds"]}
KEY = MetricKey("odds", "contrast", "delta0_balanced")


def predictions_of(change, improvement, estimator="e"):
    """Predictions of two checkpoints whose confidences differ by `change`."""
    confidence = {"a": np.full(len(change), 0.5), "b": 0.5 + np.asarray(change) / 2}
    correct = {"a": ~improvement, "b": improvement}
    return table_of_arrays(confidence, correct, estimator=estimator)


def test_balanced_replicates_by_hand():
    signs = np.array([[1.0, 1.0, -1.0, 1.0]])
    improvement = np.array([True, True, True, False])
    weights = np.array([[1.0], [2.0], [1.0], [3.0]])
    pseudo = np.array([[0.5], [0.25], [0.25], [1.0]])
    # gained: (1 + 2 − 1 + 0.5 − 0.25) / (4 + 0.75) = 2.25 / 4.75, centre 1 / (3 + 1);
    # lost: (3 + 0.25 − 1) / (3 + 1.25) = 2.25 / 4.25, centre 1 / (1 + 1)
    gained = 0.25 + np.sqrt(5 / 3) * (2.25 / 4.75 - 0.25)
    lost = 0.5 + np.sqrt(3) * (2.25 / 4.25 - 0.5)
    found = draws.balanced_replicates(signs, improvement, weights, pseudo)
    assert found.item() == pytest.approx((gained + lost) / 2)
    # gaps a tenth as large have pseudo-questions a tenth as far
    small = draws.balanced_replicates(signs / 10, improvement, weights, pseudo)
    assert small.item() == pytest.approx(found.item() / 10)


def test_replicates_of_the_change_auc_equal_a_slow_loop():
    """Pseudo-questions are rows like the others, with changes of ±∞."""
    rng = np.random.default_rng(0)
    change = np.round(rng.normal(size=9), 1)
    change[:2] = 0.3, 0.3  # a tie
    improvement = np.array([True, False] * 4 + [True])
    weights, pseudo = rng.random((9, 3)), rng.random((4, 3))
    found = draws.change_auc_replicates(change, improvement, weights, pseudo)
    rows = [*zip(change, improvement, weights, strict=True)]
    rows += [*zip([np.inf, -np.inf, -np.inf, np.inf], [1, 1, 0, 0], pseudo, strict=True)]
    for column in range(3):
        won = pairs = 0.0
        for one, gained, weight in rows:
            for other, also, against in rows:
                if gained and not also:
                    both = weight[column] * against[column]
                    pairs += both
                    won += both * (1.0 if one > other else 0.5 if one == other else 0.0)
        assert found[column] == pytest.approx(won / pairs)


def test_change_auc_by_hand():
    change = np.array([0.4, 0.1, 0.2, 0.1])
    improvement = np.array([True, True, False, False])
    # of the pairs (.4, .2), (.4, .1), (.1, .2), (.1, .1): right, right, wrong and a tie
    made = evaluate(
        predictions_of(change, improvement),
        ["a", "b"],
        EvaluationSettings(min_contrast=1),
    )
    values = made[made["seed"] == "mean"].set_index(["conditioning", "metric"])["value"]
    assert values["odds", "change_auc"] == values["fitted", "change_auc"] == 2.5 / 4
    # differences of decimals that are equal but for rounding are ties: .7 − .6 and .2 − .1
    frame = predictions_of(np.zeros(2), np.array([True, False]))
    frame["confidence"] = [0.6, 0.1, 0.7, 0.2]
    made = evaluate(frame, ["a", "b"], EvaluationSettings(min_contrast=1)).set_index("metric")[
        "value"
    ]
    assert set(made.loc["change_auc"]) == {0.5}
    one_way = evaluate(
        frame[frame["question_id"] == "q000"],
        ["a", "b"],
        EvaluationSettings(min_contrast=1),
    )
    assert one_way.loc[one_way["metric"] == "change_auc", "value"].isna().all()


def test_a_shift_takes_delta0_and_leaves_the_change_auc():
    rng = np.random.default_rng(1)
    improvement = rng.random(400) < 0.5
    earlier = np.zeros(400)  # else confidences near 1 have no room left to rise
    moved = np.where(improvement, 1.65, -1.65) + 0.77 * rng.normal(size=400)
    found = {}
    for shift in (0, 1, 2, 4):
        frame = predictions_of(np.zeros(400), improvement)
        frame["confidence"] = expit(np.concatenate([earlier, earlier + moved + shift]))
        made = evaluate(frame, ["a", "b"], EvaluationSettings(min_contrast=1)).query(
            "conditioning == 'odds'"
        )
        found[shift] = made[made["seed"] == "mean"].set_index("metric")["value"]
    follows = [found[shift]["delta0_balanced"] for shift in (0, 1, 2, 4)]
    # log-odds: Φ(1.65 / .77) = .984 follow, and of lost ones Φ((1.65 − shift) / .77)
    assert follows == pytest.approx([0.968, 0.78, 0.33, 0.0], abs=0.06)
    assert min(one["change_auc"] for one in found.values()) > 0.99


def test_one_lost_question_varies():
    """Of 40 gained questions half are followed, and so is the only lost one.

    With its class resampled by itself it never varied: the interval was about [.35, .65].
    """
    improvement = np.arange(41) < 40
    follows = np.concatenate([np.tile([1, -1], 20), [1]])
    change = 0.2 * follows * np.where(improvement, 1, -1)
    frame = predictions_of(change, improvement)
    made = replicate_metrics(frame, ["a", "b"], EvaluationSettings(min_direction=1, **HOW))
    row = intervals(made).set_index("metric").loc["delta0_balanced"]
    assert row["value"] == 0.5 and (row["improvement"], row["regression"]) == (40, 1)
    assert row["lower_2_5pct"] < 0 < row["upper_97_5pct"]
    assert np.quantile(made.replicated[KEY], 0.025) > 0.3


def test_too_few_questions_of_a_direction_give_no_interval_and_no_test(caplog):
    rng = np.random.default_rng(2)
    improvement = np.arange(34) < 30
    change = np.where(improvement, 1, -1) * rng.random(34) / 2
    other = predictions_of(rng.normal(size=34) / 9, improvement, "f")
    both = pd.concat([predictions_of(change, improvement), other])
    made = replicate_metrics(both, ["a", "b"], EvaluationSettings(min_direction=5, **HOW))
    assert "gains 30 and loses 4 questions: fewer than 5 of either give no" in caplog.text
    table = intervals(made).set_index(["estimator", "metric"])
    ends = [name for name in table if "_2_5pct" in name or "_97_5pct" in name]
    tests = compare_blocks(made, {"both": ["e", "f"]}).set_index("metric")
    for metric in ("delta0_balanced", "delta_balanced", "change_auc"):
        assert table.loc[("e", metric), ends].isna().all()
        assert table.loc[("e", metric), "value"] == made.observed["odds", "contrast", metric][0]
        assert np.isnan(tests.loc[metric, ["lower_2_5pct", "p_value"]].astype(float)).all()
        assert tests.loc[metric, "significant"]  # the paper's mark stays as it is
    assert table.loc[("f", "delta0"), ends[:2]].notna().all()
    assert table.loc[("e", "delta0"), ends].isna().all()  # all signs are 1: it does not vary
    enough = replicate_metrics(both, ["a", "b"], EvaluationSettings(min_direction=4, **HOW))
    assert not np.isnan(enough.for_claims(KEY)).any()


def test_claims_of_an_estimator_do_not_depend_on_others_or_on_memory(monkeypatch):
    predictions = make_predictions(60)
    how = HOW | {"min_direction": 1, "n_replicates": 7}
    whole = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**how))
    again = from_table(to_table(whole, "here"))
    own = whole.estimators.index(("quiz", "own"))
    alone = replicate_metrics(
        predictions.query("estimator == 'own'"),
        CHECKPOINTS,
        EvaluationSettings(**how),
    )
    assert set(whole.claims) == {key for key in whole.observed if key[2] != "smece"}
    both = ("delta0_balanced", "delta_balanced", "change_auc")
    assert set(whole.fewest) == {MetricKey("odds", "contrast", metric) for metric in both}
    for key, claims in whole.claims.items():
        np.testing.assert_allclose(alone.claims[key][0], claims[own], atol=1e-12)
        np.testing.assert_array_equal(again.for_claims(key), claims)
    assert (again.fewest, again.by_seed) == (whole.fewest, whole.by_seed)
    one, other = (draws.pseudo_weights(["quiz", e], 5, seed=3, expected=0.5) for e in "ef")
    assert (one != other).all()
    for memory in (1, 50_000):  # one replicate at a time, and some
        monkeypatch.setattr(replicates_module, "MEMORY", memory)
        cut = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**how))
        for key, observed in whole.observed.items():
            np.testing.assert_array_equal(cut.observed[key], observed)
            for found, expected in (
                (cut.replicated[key], whole.replicated[key]),
                (cut.for_claims(key), whole.for_claims(key)),
            ):
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_claims_are_means_over_pairs_and_seeds():
    """Slowly: each pair's replicates from the weights of its questions, seed by seed."""
    predictions = make_predictions(60).query("estimator == 'learnt'")
    how = HOW | {"min_direction": 1, "n_replicates": 3}
    whole = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**how))
    runs = [rows.assign(seed=0) for _, rows in predictions.groupby("seed")]
    seeds = [replicate_metrics(run, CHECKPOINTS, EvaluationSettings(**how)) for run in runs]
    for key, claims in whole.claims.items():
        mean = np.mean([seed.claims[key] for seed in seeds], axis=0)
        np.testing.assert_allclose(claims, mean, atol=1e-12)


@pytest.mark.parametrize(("kind", "truth"), [("sign", 0.0), ("gap", 0.7), ("change AUC", 0.3)])
def test_intervals_contain_the_truth(kind, truth):
    """docs/validation.md has the whole table. Of 200 worlds 95 % is 190, ± 3 by chance."""
    found = cell(kind, truth, (40, 2), worlds=200, replicates=200, seed=1)
    assert min(found["alone"], found["independent"], found["constant"]) >= 0.92
    assert found["alone before"] < 0.9


def test_other_claims_are_of_draws_that_ignore_which_answers_are_correct():
    """Slowly: the Brier score and AUC of the rows that a replicate draws, one by one."""
    predictions = make_predictions(60).query("estimator == 'own'")
    how = HOW | {"min_direction": 1, "n_replicates": 3}
    made = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**how))
    rows = predictions.assign(error=lambda p: (p["confidence"] - p["correct"]) ** 2)
    names = np.unique(rows["question_id"])
    drawn = draws.draw_sequences(len(names), range(3), seed=HOW["seed"], reach=0).counts
    for b in range(3):
        counts = dict(zip(names, drawn[:, b].tolist(), strict=True))
        repeated = rows.loc[rows.index.repeat(rows["question_id"].map(counts))]
        brier = made.for_claims(MetricKey("odds", "full", "brier"))[0, b]
        assert brier == pytest.approx(repeated["error"].mean())
        area = made.for_claims(MetricKey("odds", "full", "auc"))[0, b]
        assert area == pytest.approx(roc_auc_score(repeated["correct"], repeated["confidence"]))

"""Tests of estimators in blocks: values, intervals, marks and Holm's correction."""

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate, members, replicate_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation import significance
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import PredictionsError
from persistcal.evaluation.proportions import holm
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts


def compare(predictions, checkpoints, *, blocks, **settings):
    replicates = replicate_metrics(predictions, checkpoints, EvaluationSettings(**settings))
    return significance.compare_blocks(replicates, blocks)


BLOCK = {"main": ["end_correct", "own", "coarse", "learnt"]}
KEY = ["conditioning", "scope", "metric"]


@pytest.fixture(scope="module")
def predictions():
    return make_predictions(90, absent=[4, 11, 30])


@pytest.fixture(scope="module")
def replicates(predictions):
    return replicate_metrics(
        predictions, CHECKPOINTS, EvaluationSettings(min_contrast=5, n_replicates=40, seed=5)
    )


@pytest.fixture(scope="module")
def tests(replicates):
    return significance.compare_blocks(replicates, BLOCK)


def test_differences_and_intervals_are_those_of_the_replicates(predictions, replicates, tests):
    """Replicates are compared with resampled rows in test_bootstrap."""
    artifacts.check(tests.assign(model="m", dataset="quiz"), artifacts.SIGNIFICANCE, "here")
    assert (tests.groupby(KEY).size() == 3).all()  # estimators other than the best

    metrics = evaluate(predictions, CHECKPOINTS, EvaluationSettings(min_contrast=5)).query(
        "seed == 'mean'"
    )
    values = metrics.set_index([*KEY, "estimator"])["value"].sort_index()
    for row in tests.itertuples():
        key = MetricKey(row.conditioning, row.scope, row.metric)
        estimates, lower_is_better = values[key], METRICS[row.metric].lower_is_better
        assert row.best == (estimates.idxmin() if lower_is_better else estimates.idxmax())
        assert row.difference == pytest.approx(
            abs(estimates[row.best] - estimates[row.other]), abs=1e-9
        )
        assert row.difference >= 0
        best, rival = (members(replicates).index(("quiz", n)) for n in (row.best, row.other))
        stratified, difference = (
            (-1 if lower_is_better else 1) * (drawn[best] - drawn[rival])
            for drawn in (replicates[key].stratified, replicates[key].draws)
        )
        assert row.lower_5pct == pytest.approx(np.quantile(stratified, 0.05), abs=1e-11)
        interval = [row.lower_2_5pct, row.upper_97_5pct]
        if row.metric == "smece":  # SmoothECE has only the paper's mark
            assert np.isnan([*interval, row.p_value]).all()
            continue
        expected = np.quantile(difference, [0.025, 0.975])
        np.testing.assert_allclose(interval, expected, atol=1e-11)
        rarer = min((difference <= 1e-9).sum(), (difference >= -1e-9).sum())
        assert row.p_value == pytest.approx(min(1, 2 * (1 + rarer) / 41))
        assert row.significant == (row.lower_5pct > 0)


def test_a_better_estimator_is_significantly_better_and_an_equal_estimator_is_not():
    predictions = make_predictions(400)
    own_rows, ends = (
        predictions.query(f"estimator == '{name}'") for name in ("own", "end_correct")
    )
    worse = own_rows.assign(estimator="worse", confidence=1 - own_rows["confidence"])
    constant = ends.assign(estimator="never", confidence=0.3)
    rows_of_all = pd.concat(
        [own_rows, worse, own_rows.assign(estimator="same"), ends, constant]
    )
    settings = {"min_contrast": 20, "n_replicates": 300, "conditionings": ["odds"]}
    blocks = {"main": ["own", "same", "worse"], "rounding": ["end_correct", "never"]}
    tests = compare(rows_of_all, CHECKPOINTS, blocks=blocks, **settings)
    tests = tests.set_index(["block", "other", "scope", "metric"]).sort_index()
    # Both have a balanced delta of 0: 1/2 - 1/2 and 0, up to rounding errors.
    rounding = tests.loc["rounding"].reset_index().set_index("metric")
    for metric in ("delta0_balanced", "delta_balanced"):
        assert rounding.loc[metric, "best"] == "end_correct"
        assert rounding.loc[metric, "lower_5pct"] == 0
        assert not rounding.loc[metric, "significant"]
        assert not rounding.loc[metric, "p_value"] < 0.2

    worse, same = tests.loc["main", "worse"], tests.loc["main", "same"]
    assert worse["significant"].all() and not same["significant"].any()

    worse, same = (rows.drop("smece", level="metric") for rows in (worse, same))  # no p-value
    assert (worse["p_value"] == 2 / 301).all() and not (same["p_value"] < 0.2).any()
    # Holm multiplies by one, or by two if the equal estimator has a p-value.
    assert worse["p_holm"].isin([2 / 301, 4 / 301]).all()
    assert not worse["in_best_set"].any() and same["in_best_set"].all()
    assert (worse["simultaneous_lower"] > 0).all() and same["p_adjusted"].isna().all()


def test_blocks_share_draws_and_distinguish_training_datasets(predictions):
    learnt = predictions[predictions["estimator"] == "learnt"]
    rows = pd.concat([predictions, learnt.assign(train_dataset="other")])
    blocks = {"x": ["own", ("quiz", "learnt")], "y": ["own", ("other", "learnt")]}
    settings = {"min_contrast": 5, "conditionings": ["odds"]}
    tests = compare(rows, CHECKPOINTS, blocks=blocks, n_replicates=20, **settings)
    x, y = (tests[tests["block"] == name].reset_index(drop=True) for name in "xy")
    drop = ["block", "train_dataset"]
    # Pseudo-questions differ between estimators.
    claims = ["delta0_balanced", "delta_balanced", "change_auc"]
    x, y = (table[~table["metric"].isin(claims)].reset_index(drop=True) for table in (x, y))
    pd.testing.assert_frame_equal(x.drop(columns=drop), y.drop(columns=drop))
    assert set(y["train_dataset"]) <= {"quiz", "other"}
    with pytest.raises(PredictionsError, match="'x' has several training datasets"):
        compare(rows, CHECKPOINTS, blocks={"x": ["learnt"]}, n_replicates=2, **settings)
    with pytest.raises(PredictionsError, match="orakle of block 'x' is not in the predictions"):
        compare(rows, CHECKPOINTS, blocks={"x": ["orakle"]}, n_replicates=2, **settings)


def test_an_undefined_metric_is_not_tested_and_reported(predictions, caplog):
    tests = compare(predictions, CHECKPOINTS, min_contrast=1000, blocks=BLOCK, n_replicates=20)
    assert set(tests["scope"]) == {"full"}
    [message] = [text for text in caplog.messages if "no test of" in text]
    assert "Change AUC, AUC, Brier, ECE on contrast sets, undefined" in message


def test_holm_equals_values_by_hand_and_ignores_nan():
    # 3 x 0.01, 2 x 0.02, 1 x 0.04
    np.testing.assert_allclose(holm([0.04, np.nan, 0.01, 0.02]), [0.04, np.nan, 0.03, 0.04])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1, 1])


def test_intervals_of_estimators_are_quantiles_of_the_replicates(replicates):
    table = significance.intervals(replicates)
    key = MetricKey("odds", "full", "auc")
    rows = table[(table[KEY] == key).all(axis=1)].set_index("estimator")
    for number, (_, estimator) in enumerate(members(replicates)):
        row, drawn = rows.loc[estimator], np.sort(replicates[key].draws[number])
        # 40 values: the 2.5 % quantile is at 39 x 0.025 = 0.975 between the first and second.
        low, high = 0.025 * drawn[0] + 0.975 * drawn[1], 0.025 * drawn[-1] + 0.975 * drawn[-2]
        assert row[["lower_2_5pct", "upper_97_5pct"]].tolist() == pytest.approx([low, high])
        assert row["value"] == pytest.approx(replicates[key].values[number])

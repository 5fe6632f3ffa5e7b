import numpy as np
import pandas as pd
import pytest
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation import significance
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import PredictionsError
from persistcal.evaluation.proportions import holm
from persistcal.evaluation.replicates import replicate_metrics
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
        predictions,
        CHECKPOINTS,
        EvaluationSettings(min_contrast=5, n_replicates=40, seed=5),
    )


@pytest.fixture(scope="module")
def tests(replicates):
    return significance.compare_blocks(replicates, BLOCK)


def test_values_are_of_evaluate_and_quantiles_of_replicates(predictions, replicates, tests):
    """Whose values are those of rows that are really repeated, see test_bootstrap."""
    artifacts.check(tests.assign(model="m", dataset="quiz"), artifacts.SIGNIFICANCE, "here")
    # 3 others for each of 8 contrast metrics under 2 conditionings and 3 full metrics
    assert len(tests) == 3 * (2 * 8 + 3)
    metrics = evaluate(predictions, CHECKPOINTS, EvaluationSettings(min_contrast=5)).query(
        "seed == 'mean'"
    )
    values = metrics.set_index([*KEY, "estimator"])["value"].sort_index()
    for row in tests.itertuples():
        key = MetricKey(row.conditioning, row.scope, row.metric)
        of, lower_is_better = values[key], METRICS[row.metric].lower_is_better
        assert row.best == (of.idxmin() if lower_is_better else of.idxmax())
        assert row.difference == pytest.approx(abs(of[row.best] - of[row.other]), abs=1e-9)
        assert row.difference >= 0
        best, other = (replicates.estimators.index(("quiz", n)) for n in (row.best, row.other))
        stratified, difference = (
            (-1 if lower_is_better else 1) * (drawn[best] - drawn[other])
            for drawn in (replicates.replicated[key], replicates.for_claims(key))
        )
        assert row.lower_5pct == pytest.approx(np.quantile(stratified, 0.05), abs=1e-11)
        interval = [row.lower_2_5pct, row.upper_97_5pct]
        if row.metric == "smece":  # which has the paper's mark alone
            assert np.isnan([*interval, row.p_value]).all()
            continue
        expected = np.quantile(difference, [0.025, 0.975])
        np.testing.assert_allclose(interval, expected, atol=1e-11)
        rarer = min((difference <= 1e-9).sum(), (difference >= -1e-9).sum())
        assert row.p_value == pytest.approx(min(1, 2 * (1 + rarer) / 41))
        assert row.significant == (row.lower_5pct > 0)


def test_better_by_construction_is_significant_and_equal_is_not():
    predictions = make_predictions(400)
    own, ends = (predictions.query(f"estimator == '{name}'") for name in ("own", "end_correct"))
    worse = own.assign(estimator="worse", confidence=1 - own["confidence"])
    never = ends.assign(estimator="never", confidence=0.3)
    all_of_them = pd.concat([own, worse, own.assign(estimator="same"), ends, never])
    how = {"min_contrast": 20, "n_replicates": 300, "conditionings": ["odds"]}
    blocks = {"main": ["own", "same", "worse"], "rounding": ["end_correct", "never"]}
    tests = compare(all_of_them, CHECKPOINTS, blocks=blocks, **how)
    tests = tests.set_index(["block", "other", "scope", "metric"]).sort_index()
    # both always get a balanced delta of 0: 1/2 - 1/2 and 0, equal but for rounding
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
    # for one test, or for two if that of equal estimators has a p-value
    assert worse["p_holm"].isin([2 / 301, 4 / 301]).all()
    assert not worse["in_best_set"].any() and same["in_best_set"].all()
    assert (worse["simultaneous_lower"] > 0).all() and same["p_adjusted"].isna().all()


def test_blocks_share_draws_and_name_training_datasets(predictions):
    learnt = predictions[predictions["estimator"] == "learnt"]
    both = pd.concat([predictions, learnt.assign(train_dataset="other")])
    blocks = {"x": ["own", ("quiz", "learnt")], "y": ["own", ("other", "learnt")]}
    how = {"min_contrast": 5, "conditionings": ["odds"]}
    tests = compare(both, CHECKPOINTS, blocks=blocks, n_replicates=20, **how)
    x, y = (tests[tests["block"] == name].reset_index(drop=True) for name in "xy")
    drop = ["block", "train_dataset"]
    # pseudo-questions are an estimator's own
    claims = ["delta0_balanced", "delta_balanced", "change_auc"]
    x, y = (one[~one["metric"].isin(claims)].reset_index(drop=True) for one in (x, y))
    pd.testing.assert_frame_equal(x.drop(columns=drop), y.drop(columns=drop))
    assert set(y["train_dataset"]) <= {"quiz", "other"}
    with pytest.raises(PredictionsError, match="'x' has several training datasets"):
        compare(both, CHECKPOINTS, blocks={"x": ["learnt"]}, n_replicates=2, **how)
    with pytest.raises(PredictionsError, match="orakle of block 'x' is not in the predictions"):
        compare(both, CHECKPOINTS, blocks={"x": ["orakle"]}, n_replicates=2, **how)


def test_undefined_metrics_have_no_rows_and_a_warning(predictions, caplog):
    tests = compare(predictions, CHECKPOINTS, min_contrast=1000, blocks=BLOCK, n_replicates=20)
    assert set(tests["scope"]) == {"full"}
    assert "no test of contrast auc (odds)" in caplog.text


def test_holm_by_hand():
    # sorted 0.01 0.02 0.04: 3 x 0.01, 2 x 0.02, 1 x 0.04; NaN is not a comparison
    np.testing.assert_allclose(holm([0.04, np.nan, 0.01, 0.02]), [0.04, np.nan, 0.03, 0.04])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1, 1])


def test_intervals_hold_the_value_and_are_quantiles_of_the_replicates(replicates):
    table = significance.intervals(replicates)
    key = MetricKey("odds", "full", "auc")
    rows = table[(table[KEY] == key).all(axis=1)].set_index("estimator")
    for number, (_, estimator) in enumerate(replicates.estimators):
        row, drawn = rows.loc[estimator], np.sort(replicates.for_claims(key)[number])
        # 40 values: the 2.5 % quantile lies 0.975 of the way from the first to the second
        low, high = 0.025 * drawn[0] + 0.975 * drawn[1], 0.025 * drawn[-1] + 0.975 * drawn[-2]
        assert row[["lower_2_5pct", "upper_97_5pct"]].tolist() == pytest.approx([low, high])
        assert row["value"] == pytest.approx(replicates.observed[key][number])

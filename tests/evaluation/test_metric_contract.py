"""Every metric has a value, replicates, an interval or a reason against it, and marks."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measuring import align_models, members, replicate_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal import compare
from persistcal.evaluation.claims import make_claims
from persistcal.evaluation.metrics.registry import (
    METRICS,
    BalancedGap,
    BalancedSign,
    ChangeAUC,
    Metric,
    MetricKey,
    names,
)
from persistcal.evaluation.pipeline import measure_changes
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals
from persistcal.evaluation.subsets import metrics_of_subsets
from study.schema import load_schema

NO_GROUPS = {"margin": dict.fromkeys(CHECKPOINTS, ()), "by_question": {}}
N_REPLICATES = 40
SETTINGS = EvaluationSettings(min_contrast=5, n_replicates=N_REPLICATES, seed=3)
ESTIMATORS = ["coarse", "end_correct", "learnt", "own"]
BLOCK = {"all": ESTIMATORS}
KEYS = [
    MetricKey(conditioning, scope, metric)
    for scope, conditionings in (("contrast", ("odds", "fitted")), ("full", ("odds",)))
    for conditioning in conditionings
    for metric in names(scope)
]


@pytest.fixture(scope="module")
def predictions():
    return make_predictions(120)


@pytest.fixture(scope="module")
def replicates(predictions):
    return replicate_metrics(predictions, CHECKPOINTS, SETTINGS)


@pytest.fixture(scope="module")
def tests(replicates):
    return compare_blocks(replicates, BLOCK)


def test_the_schema_of_tables_lists_every_registered_metric():
    tables = load_schema()["properties"]["tables"]["additionalProperties"]["properties"]
    for scope in ("contrast", "full"):
        allowed = tables["columns"]["properties"][scope]["items"]["enum"]
        assert allowed == names(scope) and len(allowed) > 2


@pytest.mark.parametrize("key", KEYS)
def test_every_metric_has_a_value_and_an_interval_or_declares_that_it_has_none(replicates, key):
    row = members(replicates).index(("quiz", "own"))
    drawn, claims = replicates[key].stratified, replicates[key].draws
    assert np.isfinite(replicates[key].values).all()
    assert drawn.shape == claims.shape == (4, N_REPLICATES)
    assert drawn[row].std() > 0
    if METRICS[key.metric].has_interval:
        assert claims[row].std() > 0
    else:
        assert np.isnan(claims).all()


@pytest.mark.parametrize("key", KEYS)
def test_a_metric_without_an_interval_has_no_verdict(tests, key):
    rows = tests[(tests[["conditioning", "scope", "metric"]] == list(key)).all(axis=1)]
    assert len(rows) == 3  # all estimators but the best
    undecided = rows["simultaneous_lower"].isna() & (rows["difference"] > 1e-6)
    assert rows["in_best_set"].isna().tolist() == undecided.tolist()
    assert undecided.all() == (not METRICS[key.metric].has_interval)


def test_cells_without_a_test_have_no_mark():
    """The ECE of a constant confidence is far from the best ECE, and is not tested."""
    of_one_seed = make_predictions(60).query("seed not in (18, 19)")
    made = compare(of_one_seed, CHECKPOINTS, min_contrast=5, n_replicates=200)
    # the last column is the ECE on all questions
    rows = re.compile("coarse|end.correct|learnt|own", re.IGNORECASE)
    printed = [line for line in made.summary().splitlines() if rows.match(line)]
    assert len(printed) == 4 and any("~" in line for line in printed)
    assert [line[-1] in "0123456789*" for line in printed] == [True] * 4
    tables = {files.name: files.rows() for files in made._printed_tables()}
    cells = tables["all_estimators"]
    untested = cells[cells["metric"] == "smece"]
    assert len(untested) == 8 and not untested["underline"].any()
    assert untested["bold"].sum() == 2  # the best of each scope
    assert cells["underline"].any()


@pytest.fixture
def unregistered():
    """Remove metrics from the registry that a test adds."""
    names_before = list(METRICS)
    yield
    for name in METRICS.keys() - set(names_before):
        del METRICS[name]


def test_a_copy_of_a_metric_has_its_intervals_and_tests(unregistered, predictions):
    class Copy(BalancedGap):
        name, heading = "copied", "Copy"

    copied = replicate_metrics(predictions, CHECKPOINTS, SETTINGS)

    for table in (intervals(copied), compare_blocks(copied, BLOCK)):
        shown = table.columns.drop("metric")
        original, copy = (
            table.loc[table["metric"] == m, shown] for m in ("delta_balanced", "copied")
        )
        pd.testing.assert_frame_equal(
            original.reset_index(drop=True), copy.reset_index(drop=True)
        )
        assert original["lower_2_5pct"].notna().any()


def test_a_new_statistic_reaches_claims_asks_controls_and_subsets(unregistered, predictions):
    class CopiedSign(BalancedSign):
        name, heading = "copied_sign", "Copy"

    class CopiedAUC(ChangeAUC):
        name, heading = "copied_auc", "Copy"

    pairs = {"update": [["a", "b"]], "rerun": [["b", "c"]]}
    settings = replace(SETTINGS, pairs=pairs, min_direction=1)
    rows = predictions.assign(model="m", dataset="quiz")
    again = rows.assign(ask=2, confidence=rows["confidence"].to_numpy()[::-1])
    aligned = align_models(pd.concat([rows.assign(ask=0), again]), {"m": CHECKPOINTS}, settings)
    [data] = aligned.values()
    changes = measure_changes({"quiz": {"m": data}}, settings, controls={"update": "rerun"})
    claims, _ = make_claims(data, replicate(data, settings), settings, determinism="")
    word = ["word", "basis"]
    tables = [claims.drop(columns=[*word, "lacking"]), changes.drop(columns=word)]
    for table in (*tables, metrics_of_subsets(data, **NO_GROUPS)):
        for names_of in (("delta0_balanced", "copied_sign"), ("change_auc", "copied_auc")):
            original, copy = (
                table[table["metric"] == name].drop(columns="metric").reset_index(drop=True)
                for name in names_of
            )
            assert len(original)
            pd.testing.assert_frame_equal(original, copy)
    crossed = claims[(claims["asks"] == "cross") & (claims["metric"] == "copied_auc")]
    assert crossed["lower_2_5pct"].notna().all() and len(crossed) == 4
    controlled = changes.query("change == 'update' and metric == 'copied_auc'")
    ends = ["beyond_lower_2_5pct", "crossed_lower_2_5pct"]
    assert controlled[ends].notna().all(axis=None)


COMPLETE = {"heading": "X", "latex": "X", "contrast": len, "draws": "paper", "no_interval": "-"}


@pytest.mark.parametrize(
    ("attributes", "lacking"),
    [
        ({"heading": "X", "latex": "X", "draws": "questions"}, "lacks contrast or full"),
        ({"heading": "X", "contrast": len, "draws": "paper"}, "lacks latex, no_interval"),
        (COMPLETE | {"draws": "directions"}, "lacks weighted"),
        (COMPLETE | {"name": "auc"}, "two metrics with the name 'auc'"),
    ],
)
def test_an_incomplete_class_of_a_metric_is_refused(unregistered, attributes, lacking):
    with pytest.raises(TypeError, match=lacking):
        type("Incomplete", (Metric,), {"name": "incomplete"} | attributes)


def test_a_metric_with_another_value_than_its_parents_has_no_influence(unregistered):
    named = {"name": "other", "contrast": lambda self, run, weights: run.change @ weights}
    assert not type("Other", (ChangeAUC,), named)().has_influence
    assert type("Same", (ChangeAUC,), {"name": "same"})().has_influence


def test_smooth_ece_is_replicated_only_for_the_papers_marks(predictions):
    settings = replace(SETTINGS, paper_marks=False)
    made = replicate_metrics(predictions, CHECKPOINTS, settings)
    for key in KEYS:
        assert made[key].stratified.shape == (4, 0)
    rows = compare_blocks(made, BLOCK).query("metric == 'smece'")
    assert rows["difference"].notna().all() and rows["significant"].isna().all()

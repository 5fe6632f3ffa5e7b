"""The functions for notebooks give the numbers of the workflow, and refuse what is unclear."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.api.display import figure, table
from persistcal.api.predictions import compare, contrast_sets, evaluate, smooth_ece
from persistcal.evaluation.evaluate import evaluate as of_one

HOW = {"min_contrast": 5}


@pytest.fixture(scope="module")
def predictions():
    return make_predictions(n=80)


def test_metrics_are_those_of_the_room(predictions):
    found = evaluate(predictions, CHECKPOINTS, **HOW)
    expected = of_one(predictions, CHECKPOINTS, **HOW)
    assert list(found.columns[:2]) == ["model", "dataset"]
    pd.testing.assert_frame_equal(found.drop(columns=["model", "dataset"]), expected)


def test_each_model_and_dataset_is_evaluated_on_its_own(predictions):
    other = make_predictions(n=60, seed=1)
    both = pd.concat(
        [
            predictions.assign(model="m1", dataset="quiz"),
            other.assign(model="m2", dataset="quiz"),
        ]
    )
    found = evaluate(both, CHECKPOINTS, **HOW)
    expected = of_one(other, CHECKPOINTS, **HOW)
    of_second = found[found["model"] == "m2"].drop(columns=["model", "dataset"])
    pd.testing.assert_frame_equal(of_second.reset_index(drop=True), expected)
    assert set(contrast_sets(both, CHECKPOINTS, **HOW)["model"]) == {"m1", "m2"}


def test_contrast_sets_by_hand():
    # Question 1 is lost from a to b, question 2 gained, question 3 kept.
    rows = pd.DataFrame(
        {
            "checkpoint": list("aaabbb"),
            "question_id": [1, 2, 3] * 2,
            "correct": [1, 0, 1, 0, 1, 1],
            "confidence": 0.5,
            "estimator": "mine",
        }
    )
    [found] = contrast_sets(rows, ["a", "b"], min_contrast=3).to_dict("records")
    place = {"model": "model", "dataset": "dataset", "earlier": "a", "later": "b"}
    assert found == {**place, "size": 2, "improvement": 1, "regression": 1, "kept": False}


def test_the_table_marks_the_best_and_what_is_not_significantly_worse(predictions):
    metrics = evaluate(predictions, CHECKPOINTS, **HOW)
    tests, intervals = compare(predictions, CHECKPOINTS, **HOW, n_replicates=200)
    shown = table(metrics, tests)
    means = metrics[(metrics["seed"] == "mean") & (metrics["conditioning"] == "odds")]
    auc = means[(means["scope"] == "full") & (means["metric"] == "auc")]
    column = shown.data["full", "auc"]
    assert len(column) == 4
    expected = auc.set_index("estimator")["value"]
    assert column.droplevel([0, 1, 2]).to_dict() == expected.to_dict()
    html = shown.to_html()
    best = f"{expected.max():.3f}"
    assert "font-weight: bold" in html and "text-decoration: underline" in html and best in html
    aucs = tests[(tests["scope"] == "full") & (tests["metric"] == "auc")]
    assert set(aucs["best"]) == {expected.idxmax()} and len(aucs) == 3
    drawn = figure(intervals)
    assert drawn.axes[0].get_ylabel() == "Contrast-set AUC"


def test_estimators_of_several_training_sets_have_a_block_each(predictions):
    elsewhere = predictions.assign(train_dataset="exam")
    both = pd.concat([predictions, elsewhere]).assign(dataset="quiz")
    metrics = evaluate(both, CHECKPOINTS, **HOW)
    tests, _ = compare(both, CHECKPOINTS, **HOW, n_replicates=100)
    assert tests["block"].nunique() == 2
    found = table(metrics, tests).data.index.get_level_values("train_dataset")
    assert list(found.unique()) == ["exam", "quiz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.drop(columns="correct"), "lack the column 'correct'"),
        (lambda p: p.assign(estimator=None), "no estimator in 1440 row"),
        (lambda p: p.assign(seed=np.nan), "no seed in 1440 row"),
        (lambda p: p.assign(confidence=p["confidence"] * 100), r"not a number in \[0, 1\]"),
        (lambda p: p.drop(columns="seed"), "A second prediction for the same"),
    ],
)
def test_unclear_predictions_are_refused(predictions, change, message):
    with pytest.raises(ValueError, match=message):
        evaluate(change(predictions), CHECKPOINTS, **HOW)


def test_smooth_ece_refuses_what_would_be_broadcast():
    with pytest.raises(ValueError, match="one of each per answer"):
        smooth_ece([0.1, 0.2], [[1], [0]])
    with pytest.raises(ValueError, match="not in"):
        smooth_ece([10, 90], [0, 1])


def test_the_package_is_imported_at_once_and_without_torch():
    code = (
        "import time; start = time.process_time()\n"
        "import persistcal, persistcal.api.predictions, persistcal.api.display, sys\n"
        "assert time.process_time() - start < 1\n"
        "assert 'torch' not in sys.modules\n"
        "persistcal.api.predictions.smooth_ece([0.5], [1])\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Metrics of each named kind of change."""

import numpy as np
import pandas as pd
import pytest
from measure_changes import measure_changes
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.replicates import replicate_metrics
from persistcal.evaluation.significance import intervals
from persistcal.store import artifacts

CHANGES = {"tuned": [["a", "b"], ["b", "c"]], "same": [["c", "again"]], "absent": [["x", "y"]]}
HOW = {"n_replicates": 50, "seed": 3}
KEY = ["estimator", "metric"]


@pytest.fixture(scope="module")
def predictions():
    frame = make_predictions(n=120)
    return pd.concat([frame, frame[frame["checkpoint"] == "c"].assign(checkpoint="again")])


@pytest.fixture(scope="module")
def measured(predictions):
    frame = predictions.assign(model="m", dataset="quiz")
    table = measure_changes(
        [rows for _, rows in frame.groupby("estimator", sort=False)],
        checkpoints={"m": [*CHECKPOINTS, "again"]},
        changes=CHANGES,
        **HOW,
    )
    artifacts.check(table, artifacts.CHANGES, "changes")
    return table


def test_a_kind_is_evaluated_like_a_study_of_its_pairs_alone(predictions, measured):
    of_kind = measured[measured["change"] == "tuned"].set_index(KEY)
    own = predictions[predictions["checkpoint"] != "again"]
    how = {"min_contrast": 1, "pairs": CHANGES["tuned"]}
    how["conditionings"] = ["odds"]
    metrics = evaluate(own, CHECKPOINTS, **how)
    metrics = metrics[(metrics["seed"] == "mean") & (metrics["scope"] == "contrast")]
    metrics = metrics.set_index(KEY)["value"]
    pd.testing.assert_series_equal(of_kind["value"], metrics.loc[of_kind.index])
    drawn = intervals(replicate_metrics(own, CHECKPOINTS, **how, **HOW))
    drawn = drawn[drawn["scope"] == "contrast"].set_index(KEY)
    for end in ("lower_2_5pct", "seeds_upper_97_5pct", "n_seeds"):
        pd.testing.assert_series_equal(of_kind[end], drawn.loc[of_kind.index, end])
    assert of_kind.loc["learnt", "n_seeds"].tolist() == [3, 3]


def test_counts_are_those_of_the_contrast_sets(predictions, measured):
    one = predictions[predictions["estimator"] == "own"]
    correct = one.pivot(index="question_id", columns="checkpoint", values="correct").astype(int)
    steps = [correct["b"] - correct["a"], correct["c"] - correct["b"]]
    expected = {
        "n_pairs": 2,
        "questions": sum((step != 0).sum() for step in steps),
        "improvement": sum((step > 0).sum() for step in steps),
        "regression": sum((step < 0).sum() for step in steps),
    }
    rows = measured[measured["change"] == "tuned"]
    assert rows[[*expected]].drop_duplicates().to_dict("records") == [expected]


def test_confidence_in_what_is_lost_is_a_mean_over_pairs_and_seeds(predictions, measured):
    at = predictions.set_index(["checkpoint", "question_id"]).sort_index()
    rows = measured[measured["change"] == "tuned"].drop_duplicates("estimator")
    for row in rows.to_dict("records"):
        of = at[at["estimator"] == row["estimator"]]
        before, after = [], []
        for one, other in CHANGES["tuned"]:
            right, later = of.loc[one, "correct"], of.loc[other, "correct"]
            lost = [q for q in right.index.unique() if right[q].all() and not later[q].any()]
            before += of.loc[one].loc[lost, "confidence"].tolist()
            after += of.loc[other].loc[lost, "confidence"].tolist()
        assert row["lost_before"] == pytest.approx(np.mean(before))
        assert row["lost_after"] == pytest.approx(np.mean(after))


def test_a_kind_without_a_flip_has_counts_and_no_value(measured):
    same = measured[measured["change"] == "same"]
    assert same["n_pairs"].eq(1).all() and len(same) == 2 * 4
    assert not same[["questions", "improvement", "regression"]].to_numpy().any()
    assert (
        same[["value", "lower_2_5pct", "seeds_lower_2_5pct", "lost_after"]]
        .isna()
        .all(axis=None)
    )
    assert "absent" not in set(measured["change"])

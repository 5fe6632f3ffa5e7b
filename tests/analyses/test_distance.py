"""Metrics of each pair of checkpoints."""

import numpy as np
import pandas as pd
import pytest

from persistcal.analyses.distance import metrics_of_pairs
from persistcal.evaluation.evaluate import evaluate
from persistcal.report.analysis_figures import distance_figure
from persistcal.store import artifacts

CHECKPOINTS = ["a", "b", "c", "d"]


def predictions(n=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        (checkpoint, f"q{q:03}", "quiz", estimator, seed, rng.random(), rng.random() < 0.5)
        for checkpoint in CHECKPOINTS
        for q in range(n)
        for estimator, seed in (("oracle", 1), ("oracle", 2), ("self_consistency", 0))
    ]
    frame = pd.DataFrame(rows, columns=artifacts.PREDICTIONS.schema.names)
    first = frame.groupby(["checkpoint", "question_id"])["correct"].transform("first")
    return frame.assign(correct=first)


def test_the_means_over_pairs_are_the_studys_metrics():
    found = metrics_of_pairs(predictions(), CHECKPOINTS, min_contrast=1)
    assert len(found) == 6 * 2 * 2  # pairs, estimators, metrics
    whole = evaluate(predictions(), CHECKPOINTS, min_contrast=1)
    whole = whole[
        (whole["seed"] == "mean")
        & (whole["scope"] == "contrast")
        & (whole["conditioning"] == "odds")
    ].set_index(["estimator", "metric"])["value"]
    means = found.groupby(["estimator", "metric"])["value"].mean()
    for key, value in means.items():
        assert value == pytest.approx(whole[key], abs=1e-12)


def test_a_pair_by_hand():
    """Questions 1 and 2 are gained from a to b, question 3 is lost."""
    rows = [
        ("a", "q1", 0.2, False), ("b", "q1", 0.6, True),  # rises: +1
        ("a", "q2", 0.5, False), ("b", "q2", 0.4, True),  # falls: -1
        ("a", "q3", 0.9, True), ("b", "q3", 0.1, False),  # falls, and was lost: +1
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["checkpoint", "question_id", "confidence", "correct"])
    frame = frame.assign(train_dataset="quiz", estimator="oracle", seed=1)
    found = metrics_of_pairs(frame, ["a", "b"], min_contrast=3).set_index("metric")
    # the mean of (+1 - 1) / 2 = 0 over gained and +1 over lost questions
    assert found.loc["delta0_balanced", "value"] == pytest.approx(0.5)
    assert found.loc["auc", ["distance", "size"]].tolist() == [1, 3]
    assert metrics_of_pairs(frame, ["a", "b"], min_contrast=4).empty


def test_distance_counts_checkpoints_of_the_pairs_that_are_chosen():
    near = metrics_of_pairs(predictions(), CHECKPOINTS, min_contrast=1, pairs="adjacent")
    assert set(near["distance"]) == {1}
    first = metrics_of_pairs(predictions(), CHECKPOINTS, min_contrast=1, pairs="first")
    assert sorted(set(first["distance"])) == [1, 2, 3]


def test_the_figure_has_a_line_for_each_estimator_and_metric():
    pairs = metrics_of_pairs(predictions(), CHECKPOINTS, min_contrast=1)
    table = pairs.assign(model="m", dataset="quiz")
    figure = distance_figure(table, models={"m": "M"}, estimators={"oracle": "Oracle"})
    for axes, metric in zip(figure.axes, ("delta0_balanced", "auc"), strict=True):
        lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
        assert len(lines) == 2
        of_oracle = table[(table["estimator"] == "oracle") & (table["metric"] == metric)]
        expected = of_oracle.groupby("distance")["value"].mean()
        assert np.allclose(lines[0].get_ydata(), expected)

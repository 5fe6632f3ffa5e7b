"""Metrics of each pair of checkpoints, and the sweep over the smallest contrast set."""

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate
from synthetic_predictions import table

from persistcal.evaluation.aligned import align, align_subjects
from persistcal.evaluation.evaluate import metrics_of_pairs, sweep_min_contrast
from persistcal.evaluation.metrics.registry import names
from persistcal.evaluation.pipeline import measure_pairs
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report.analysis_tables import by_part
from persistcal.report.figures import distance_figure
from persistcal.store import artifacts

CHECKPOINTS = ["a", "b", "c", "d"]
SERIES = ["estimator", "metric"]


def predictions(n=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        (checkpoint, f"q{q:03}", "quiz", estimator, seed, rng.random(), rng.random() < 0.5)
        for checkpoint in CHECKPOINTS
        for q in range(n)
        for estimator, seed in (("oracle", 1), ("oracle", 2), ("self_consistency", 0))
    ]
    frame = pd.DataFrame(rows, columns=artifacts.PREDICTIONS.but("ask", "group"))
    first = frame.groupby(["checkpoint", "question_id"])["correct"].transform("first")
    return artifacts.PREDICTIONS.fill(frame.assign(correct=first))


def test_the_sweep_over_min_contrast_equals_a_study_for_each_value():
    all_pairs = metrics_of_pairs(
        align(predictions(), CHECKPOINTS, EvaluationSettings(min_contrast=1))
    )
    sizes = sorted(set(all_pairs["size"]))
    assert len(sizes) > 3

    settings = EvaluationSettings(min_contrast=sizes[2])
    pairs = metrics_of_pairs(align(predictions(), CHECKPOINTS, settings))
    assert len(pairs) == 6 * 2 * len(names("contrast"))  # pairs, estimators
    assert (pairs["kept"] == (pairs["size"] >= sizes[2])).all()

    swept = sweep_min_contrast(pairs, chosen=sizes[1] + 1)
    assert sorted(set(swept["min_contrast"])) == sizes
    for min_contrast, rows in swept.groupby("min_contrast"):
        settings = {"min_contrast": int(min_contrast), "conditionings": ["odds"]}
        whole = evaluate(predictions(), CHECKPOINTS, EvaluationSettings(**settings))
        expected = whole.query("seed == 'mean' and scope == 'contrast'").set_index(SERIES)
        swept_metrics = rows.set_index(SERIES)
        for column in ("value", "pairs"):
            expected_column = expected[column].loc[swept_metrics.index]
            pd.testing.assert_series_equal(swept_metrics[column], expected_column, atol=1e-12)
        # `chosen` marks the smallest size that the configured value keeps: the third.
        assert swept_metrics["chosen"].eq(min_contrast == sizes[2]).all()

    swept_exactly = sweep_min_contrast(pairs, chosen=sizes[1])
    assert set(swept_exactly.loc[swept_exactly["chosen"], "min_contrast"]) == {sizes[1]}
    assert not sweep_min_contrast(pairs, chosen=sizes[-1] + 1)["chosen"].any()


ROWS = [
    ("a", "q1", 0.2, False), ("b", "q1", 0.6, True),  # rises: +1
    ("a", "q2", 0.5, False), ("b", "q2", 0.4, True),  # falls: -1
    ("a", "q3", 0.9, True), ("b", "q3", 0.1, False),  # falls, and was lost: +1
]  # fmt: skip
BY_HAND = table(ROWS, estimator="oracle", seed=1)
LABELS = {"models": {"m": "M"}, "estimators": {"oracle": "Oracle"}}


def print_sweep(swept, metric):
    settings = {
        "by": {"min_contrast": "At least"},
        "only": ["another"],
        "caption": "C",
        "label": "l",
    }
    labels = {**LABELS, "datasets": {"other": "R&D"}}
    return by_part(swept, columns=[("contrast", metric)], labels=labels, **settings)


def measure_with_script(frame, **min_contrast):
    settings = {d: EvaluationSettings(min_contrast=n) for d, n in min_contrast.items()}
    rows = frame.assign(model="m", dataset="quiz")
    return measure_pairs(align_subjects([rows], {"m": ["a", "b"]}, settings), settings)


def test_pairs_that_are_not_kept_are_measured_and_swept():
    pairs, swept = measure_with_script(BY_HAND, quiz=4)
    # q1 and q2 are improvements, q3 is a regression. Signs: +1, −1, +1
    by_metric = pairs.set_index("metric")
    assert set(by_metric.index) == set(names("contrast"))
    assert by_metric.loc["auc", ["distance", "size", "kept"]].tolist() == [1, 3, False]
    assert by_metric.loc["delta0", "value"] == pytest.approx(1 / 3)
    # ((+1 − 1) / 2 + 1) / 2 = 0.5
    row = swept.set_index("metric").loc["delta0_balanced"]
    assert row["value"] == 0.5 and not row["chosen"]
    assert (row["min_contrast"], row["kept"], row["pairs"]) == (3, "a–b", "1 of 1")
    [axes] = distance_figure(pairs, **LABELS).axes
    assert axes.get_title(loc="left").startswith("No contrast set is kept")
    # An estimator trained on another dataset has a row with the dataset's name.
    rows = pd.concat([swept, swept.assign(train_dataset="other")])
    printed_sweep = print_sweep(rows, "delta0_balanced")
    assert printed_sweep.rows["contrast_delta0_balanced"].tolist() == [0.5, 0.5]
    assert r"3 & Oracle & 0.500 \\" in printed_sweep.tex
    assert r"3 & Oracle (trained on R\&D) & 0.500 \\" in printed_sweep.tex


def test_a_pair_without_changed_answers_has_undefined_metrics():
    pairs, swept = measure_with_script(BY_HAND.assign(correct=True), quiz=1)
    assert pairs["value"].isna().all() and (pairs["size"] == 0).all()
    assert swept.empty
    printed_sweep = print_sweep(swept, "auc")
    # The page reads the columns.
    assert printed_sweep.rows.empty and "contrast_auc" in printed_sweep.rows


def test_the_distance_figure_shows_the_mean_of_each_metric_by_distance():
    pairs = metrics_of_pairs(
        align(predictions(), CHECKPOINTS, EvaluationSettings(min_contrast=1))
    )
    positions = pairs[["earlier", "later"]].map(CHECKPOINTS.index)
    assert pairs["distance"].equals(positions["later"] - positions["earlier"])

    rows = pairs.assign(model="m", dataset="quiz")
    figure = distance_figure(rows, **LABELS)
    for axes, metric in zip(figure.axes, ("delta0_balanced", "change_auc", "auc"), strict=True):
        lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
        assert len(lines) == 2
        of_oracle = rows[(rows["estimator"] == "oracle") & (rows["metric"] == metric)]
        expected = of_oracle.groupby("distance")["value"].mean()
        assert np.allclose(lines[0].get_ydata(), expected)

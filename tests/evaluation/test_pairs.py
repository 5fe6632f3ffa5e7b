"""Metrics of each pair of checkpoints, and the sweep over the smallest contrast set."""

import numpy as np
import pandas as pd
import pytest
from synthetic_predictions import table

from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.metrics.registry import names
from persistcal.evaluation.pipeline import measure_pairs
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.subsets import metrics_of_pairs, sweep_min_contrast
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


def test_the_sweep_is_the_study_evaluated_anew_for_each_size():
    every = metrics_of_pairs(predictions(), CHECKPOINTS, EvaluationSettings(min_contrast=1))
    sizes = sorted(set(every["size"]))
    assert len(sizes) > 3
    pairs = metrics_of_pairs(
        predictions(),
        CHECKPOINTS,
        EvaluationSettings(min_contrast=sizes[2]),
    )
    assert len(pairs) == 6 * 2 * len(names("contrast"))  # pairs, estimators
    assert (pairs["kept"] == (pairs["size"] >= sizes[2])).all()
    swept = sweep_min_contrast(pairs, chosen=sizes[1] + 1)
    assert sorted(set(swept["min_contrast"])) == sizes
    for least, rows in swept.groupby("min_contrast"):
        how = {"min_contrast": int(least), "conditionings": ["odds"]}
        whole = evaluate(predictions(), CHECKPOINTS, EvaluationSettings(**how))
        expected = whole.query("seed == 'mean' and scope == 'contrast'").set_index(SERIES)
        found = rows.set_index(SERIES)
        for column in ("value", "pairs"):
            of = expected[column].loc[found.index]
            pd.testing.assert_series_equal(found[column], of, atol=1e-12)
        # One more than the second size keeps the pairs of the third size and above.
        assert found["chosen"].eq(least == sizes[2]).all()
    exactly = sweep_min_contrast(pairs, chosen=sizes[1])
    assert set(exactly.loc[exactly["chosen"], "min_contrast"]) == {sizes[1]}
    assert not sweep_min_contrast(pairs, chosen=sizes[-1] + 1)["chosen"].any()


ROWS = [
    ("a", "q1", 0.2, False), ("b", "q1", 0.6, True),  # rises: +1
    ("a", "q2", 0.5, False), ("b", "q2", 0.4, True),  # falls: -1
    ("a", "q3", 0.9, True), ("b", "q3", 0.1, False),  # falls, and was lost: +1
]  # fmt: skip
BY_HAND = table(ROWS, estimator="oracle", seed=1)
LABELS = {"models": {"m": "M"}, "estimators": {"oracle": "Oracle"}}


def printed(swept, metric):
    how = {
        "by": {"min_contrast": "At least"},
        "only": ["another"],
        "caption": "C",
        "label": "l",
    }
    labels = {**LABELS, "datasets": {"other": "R&D"}}
    return by_part(swept, columns=[("contrast", metric)], labels=labels, **how)


def of_script(frame, **min_contrast):
    settings = {d: EvaluationSettings(min_contrast=n) for d, n in min_contrast.items()}
    how = {"checkpoints": {"m": ["a", "b"]}, "settings": settings}
    return measure_pairs([frame.assign(model="m", dataset="quiz")], **how)


def test_two_checkpoints_have_their_rows_though_none_is_kept():
    pairs, swept = of_script(BY_HAND, quiz=4)
    # questions 1 and 2 are gained from a to b, question 3 is lost
    by_metric = pairs.set_index("metric")
    assert set(by_metric.index) == set(names("contrast"))
    assert by_metric.loc["auc", ["distance", "size", "kept"]].tolist() == [1, 3, False]
    assert by_metric.loc["delta0", "value"] == pytest.approx(1 / 3)
    # the mean of (+1 - 1) / 2 = 0 over gained and +1 over lost questions
    of = swept.set_index("metric").loc["delta0_balanced"]
    assert of["value"] == 0.5 and not of["chosen"]
    assert (of["min_contrast"], of["kept"], of["pairs"]) == (3, "a–b", "1 of 1")
    [axes] = distance_figure(pairs, **LABELS).axes
    assert axes.get_title().startswith("No contrast set is kept")
    # The table of both: a row with Δ₀ᵇ, and as an estimator that was trained elsewhere.
    both = pd.concat([swept, swept.assign(train_dataset="other")])
    made = printed(both, "delta0_balanced")
    assert made.rows["contrast_delta0_balanced"].tolist() == [0.5, 0.5]
    assert r"3 & Oracle & 0.500 \\" in made.tex
    assert r"3 & Oracle (trained on R\&D) & 0.500 \\" in made.tex


def test_answers_that_never_change_have_a_pair_and_no_number():
    pairs, swept = of_script(BY_HAND.assign(correct=True), quiz=1)
    assert pairs["value"].isna().all() and (pairs["size"] == 0).all()
    assert swept.empty
    made = printed(swept, "auc")
    assert made.rows.empty and "contrast_auc" in made.rows  # the page reads its columns


def test_distance_counts_checkpoints_of_the_pairs_that_are_chosen():
    near = metrics_of_pairs(
        predictions(),
        CHECKPOINTS,
        EvaluationSettings(min_contrast=1, pairs="adjacent"),
    )
    assert set(near["distance"]) == {1}
    first = metrics_of_pairs(
        predictions(),
        CHECKPOINTS,
        EvaluationSettings(min_contrast=1, pairs="first"),
    )
    assert sorted(set(first["distance"])) == [1, 2, 3]


def test_the_figure_has_a_line_for_each_estimator_and_metric():
    pairs = metrics_of_pairs(predictions(), CHECKPOINTS, EvaluationSettings(min_contrast=1))
    rows = pairs.assign(model="m", dataset="quiz")
    figure = distance_figure(rows, **LABELS)
    for axes, metric in zip(figure.axes, ("delta0_balanced", "change_auc", "auc"), strict=True):
        lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
        assert len(lines) == 2
        of_oracle = rows[(rows["estimator"] == "oracle") & (rows["metric"] == metric)]
        expected = of_oracle.groupby("distance")["value"].mean()
        assert np.allclose(lines[0].get_ydata(), expected)

"""Curves and figures of confidence before and after an update, by hand."""

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate

from persistcal.evaluation.predictions import arrange
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.thresholds import certified_candidates
from persistcal.report import curves, update_figures

PLACE = {"model": "m", "dataset": "d", "train_dataset": "d"}
LABELS = {
    "models": {"m": "Model m"},
    "datasets": {"d": "Quiz"},
    "estimators": {"sure": "Sure", "flat": "Flat"},
}
SHOWN = {"checkpoints": {"m": {"a": "v1", "b": "v2"}}, "labels": LABELS, "only": []}
THRESHOLD = {"precision": 0.8, "delta": 0.1}


def predictions(estimator, seed=0, **confidence):
    """Return 100 answers: 60 right at a, 80 right at b; 30 gained and 10 lost."""
    right = {"a": np.arange(100) < 60, "b": (np.arange(100) < 50) | (np.arange(100) >= 70)}
    frames = [
        pd.DataFrame({"question_id": [f"q{i:02d}" for i in range(100)]}).assign(
            checkpoint=name, confidence=stated, correct=right[name], estimator=estimator
        )
        for name, stated in confidence.items()
    ]
    return pd.concat(frames).assign(seed=seed, **PLACE)


@pytest.fixture
def sure():
    """Return answers with a confidence of .95 if they are right and .15 if they are wrong."""
    rows = predictions("sure", a=0.15, b=0.15)
    return rows.assign(confidence=np.where(rows["correct"], 0.95, 0.15))


@pytest.fixture
def two_estimators(sure):
    """Return also the answers of an estimator with a constant confidence of .5."""
    return pd.concat([sure, predictions("flat", a=0.5, b=0.5)])


def panels(figure):
    return {axes.get_title(loc="left"): axes for axes in figure.axes}


def test_histograms_show_confidence_before_and_after_the_update(two_estimators):
    figure = update_figures.shifts_figure(two_estimators, **SHOWN)
    axes = panels(figure)["Sure"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["unchanged\n60", "lost\n10", "gained\n30"]
    gained_after, gained_before = axes.patches[-2:]
    # Bin 3 is [.15, .2) and bin 19 [.95, 1]; gained questions have the baseline 2.
    assert np.argmax(gained_before.get_data().values) == 3
    assert np.argmax(gained_after.get_data().values) == 19
    lost_after, lost_before = axes.patches[2:4]
    assert np.argmax(lost_before.get_data().values) == 19
    assert np.argmax(lost_after.get_data().values) == 3


def test_precision_and_coverage_are_drawn_with_threshold_and_range(two_estimators):
    figure = update_figures.threshold_figure(two_estimators, **SHOWN, threshold=THRESHOLD)
    sure, flat = (panels(figure)[name] for name in ("Sure", "Flat"))
    target, old, earlier_precision, _, later_precision, coverage = sure.lines
    assert target.get_ydata() == [0.8, 0.8]
    assert old.get_xdata() == [0.95, 0.95]  # all 60 answers there are right
    # Above .15, all answers are right; all answers: 60 and 80 of 100.
    assert earlier_precision.get_ydata()[[0, 20]].tolist() == [0.6, 1]
    assert later_precision.get_ydata()[[0, 20]].tolist() == [0.8, 1]
    assert coverage.get_ydata()[[0, 20]].tolist() == [1, 0.8]
    [certified] = sure.patches
    low, high = certified.get_x(), certified.get_x() + certified.get_width()
    # At .15 and below all 100 answers are given, and P[Binomial(100, .2) ≤ 20] is above .025.
    assert (low, high) == pytest.approx((0.16, 0.94))
    assert not flat.patches and len(flat.lines) == 5  # no threshold


def test_a_range_is_certified_only_if_every_seed_certifies_it(sure):
    """The second seed has no confidence above .9, so its range ends there."""
    lower = sure.assign(seed=1, confidence=sure["confidence"].clip(upper=0.9))
    settings = EvaluationSettings(**THRESHOLD)
    answers = arrange(pd.concat([sure, lower]), ["a", "b"])
    runs = answers.estimators["d", "sure"]
    assert curves.certified_ranges(answers, runs, 1, settings) == [(0.16, 0.9)]
    assert curves.certified_ranges(answers, runs[:1], 1, settings) == [(0.16, 0.94)]


@pytest.mark.parametrize("seed", range(20))
def test_no_answer_is_between_a_certified_range_and_the_lowest_threshold_that_passes(seed):
    """Of 400 different confidences at most 100 are tested."""
    rng = np.random.default_rng(seed)
    stated = rng.beta(2, 1.2, 400)
    rows = {"question_id": np.arange(400), "checkpoint": "a", "confidence": stated, "seed": 0}
    rows |= {"correct": rng.random(400) < stated, "estimator": "sure", "train_dataset": "d"}
    answers, target = arrange(pd.DataFrame(rows), ["a"]), {"precision": 0.8, "delta": 0.1}
    runs = answers.estimators["d", "sure"]
    tested, passes = certified_candidates(stated, rows["correct"], **target)
    for low, _ in curves.certified_ranges(answers, runs, 0, EvaluationSettings(**target)):
        lowest = tested[passes].min()
        assert not ((stated >= low) & (stated < lowest)).any()


def test_reliability_of_both_checkpoints_is_in_one_panel(two_estimators):
    figure = update_figures.reliability_figure(two_estimators, **SHOWN)
    diagonal, earlier_curve, later_curve = panels(figure)["Sure"].lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert earlier_curve.get_linestyle() == "--" and later_curve.get_linestyle() == "-"
    # All answers at .95 are right, and those at .15 wrong.
    assert [later_curve.get_ydata()[0], later_curve.get_ydata()[-1]] == pytest.approx(
        [0, 1], abs=0.01
    )
    assert panels(figure)["Flat"].lines[2].get_ydata() == pytest.approx(0.8)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["v1", "v2"]


def test_a_label_curve_begins_at_sheets_that_certify_nothing(two_estimators):
    figure = update_figures.label_curve_figure(two_estimators, **SHOWN, threshold=THRESHOLD)
    certified, coverage = figure.axes
    sure, flat = certified.lines
    assert sure.get_xdata().tolist() == [30, 60, 100]
    # With all labels, the precision at .95 is known to be 1; .5 gives exactly the target.
    assert sure.get_ydata()[-1] == flat.get_ydata()[-1] == 1
    assert coverage.lines[0].get_ydata()[-1] == 1  # all 100 answers are 80 % right
    assert certified.get_title(loc="left") == "Sheets that certify 80 % precision"


def test_the_figure_of_an_update_needs_two_checkpoints(two_estimators):
    settings = {**SHOWN, "checkpoints": {"m": {"a": "v1"}}}
    rows = two_estimators[two_estimators["checkpoint"] == "a"]
    figure = update_figures.shifts_figure(rows, **settings)
    assert figure.axes[0].get_title(loc="left").startswith("There is only one checkpoint")


def test_the_share_of_gained_questions_is_the_contrast_auc_of_end_correct():
    """It is the reference line of changes; 30 of 40 changed questions are gained."""
    rows = predictions("end_correct", a=0.0, b=1.0)
    metrics = evaluate(rows, ["a", "b"], EvaluationSettings(min_contrast=1))
    auc = metrics.query("metric == 'auc' and scope == 'contrast' and conditioning == 'odds'")
    assert auc["value"].to_numpy() == pytest.approx(30 / 40)

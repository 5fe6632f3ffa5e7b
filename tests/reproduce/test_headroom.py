"""Headroom of a verifier, and the error rate of the verifier's backbone."""

import numpy as np
import pandas as pd
import pytest
from measure_headroom import measure_headroom
from measuring import contrast_members

from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import MetricSamples, to_table
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts
from reproduce.figures import headroom_figure
from reproduce.transfer import headroom

LABELS = {
    "models": {"m": "Model m", "n": "Model n", "unused": "Unused"},
    "datasets": {"d": "Quiz", "e": "Exam"},
    "verifier": "GCM",
    "oracle": "Oracle training",
}


def replicates(verifier, oracle):
    """Return contrast AUCs of both estimators: on the data, then on replicates."""
    key, n = MetricKey("odds", "contrast", "auc"), len(oracle) - 1
    other_metrics = {
        MetricKey("fitted", "contrast", "auc"): 0.9,
        MetricKey("odds", "full", "auc"): 0.9,
    }
    values = {key: np.array([verifier, oracle])}
    for other, value in other_metrics.items():
        values[other] = np.zeros((2, n + 1))
        values[other][0, 0] = value
    members = [("d", "gcm"), ("d", "oracle")]
    return {
        k: MetricSamples(
            {
                m: Sample(row[0], np.zeros(n), {0: 0.5})
                for m, row in zip(members, rows, strict=True)
            },
            np.zeros((2, 8)),
            np.inf,
            None,
            rows[:, 1:],
        )
        for k, rows in values.items()
    }


def test_headroom_is_the_auc_of_the_oracle_minus_the_verifiers():
    replicated = replicates([0.7, 0.6, 0.6, 0.6, 0.6, 0.6], [0.75, 0.6, 0.7, 0.8, 0.9, 1.0])
    ahead = headroom(replicated, dataset="d", verifier="gcm", oracle="oracle")
    # Differences 0, 0.1, … 0.4: the 2.5 % quantile is 0 + 0.1 * (0.025 * 4) = 0.01.
    assert ahead == pytest.approx((0.05, 0.01, 0.39))
    behind = headroom(replicated, dataset="d", verifier="oracle", oracle="gcm")
    assert behind == pytest.approx((-0.05, -0.39, -0.01))
    undefined = replicates([np.nan] * 6, [0.75, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert np.isnan(headroom(undefined, dataset="d", verifier="gcm", oracle="oracle")).all()


def answers(correct):
    """Return the table ANSWERS for q0, q1, …, without a row if the label is None."""
    ids = [f"q{i}" for i, label in enumerate(correct) if label is not None]
    frame = pd.DataFrame({"question_id": ids, "split": "test", "answer": "a"})
    label = np.array([label for label in correct if label is not None], bool)
    return frame.assign(probability=0.5, correct=label)


ANSWERS = {
    "x": answers([0, 0, 1, 0, 1, 0]),
    "y": answers([0, 0, 1, 1, 1, 0]),
    "z": answers([1, 1, 1, 1, 0, 0]),
}


def test_a_row_contains_the_headroom_and_the_backbones_error_rate_on_changes():
    measured = measure_headroom(
        # Changes: x-y: q3, which is not kept; x-z: q0 q1 q3 q4; y-z: q0 q1 q4
        contrast_members(
            pd.concat([table.assign(checkpoint=name) for name, table in ANSWERS.items()]),
            ["x", "y", "z"],
            EvaluationSettings(min_contrast=3),
        ),
        # The backbone is right on q0, q2 and q5, wrong on q1 and q3, and does not answer q4.
        answers([1, 0, 1, 0, None, 1]),
        to_table(replicates([0.75, 0.6, 0.7], [0.7, 0.6, 0.6]), "alike"),
        dataset="d",
        compared=("gcm", "oracle"),
    )
    artifacts.check(measured.assign(model="m", dataset="d"), artifacts.HEADROOM, "here")
    [row] = measured.to_dict("records")
    assert row == {
        # Replicates 0 and -0.1: quantiles -0.1 * 0.975 and -0.1 * 0.025
        "headroom": pytest.approx(-0.05),
        "lower_2_5pct": pytest.approx(-0.0975),
        "upper_97_5pct": pytest.approx(-0.0025),
        "error_rate": pytest.approx(2 / 3),  # wrong on q1 and q3 among q0, q1, q3
        "n_answered": 3,
        "n": 4,
    }


def test_the_headroom_figure_has_a_point_per_model_and_dataset_with_a_headroom():
    rows = pd.DataFrame(
        [
            ("m", "d", 0.02, -0.01, 0.05, 0.4, 90, 100),
            ("n", "e", 0.2, 0.1, 0.3, 0.6, 100, 100),
            ("n", "d", None, None, None, 0.6, 0, 0),
        ],
        columns=artifacts.HEADROOM.schema.names,
    )
    figure = headroom_figure(rows, **LABELS)
    [axes] = figure.axes
    points = [tuple(points_drawn.get_offsets()[0]) for points_drawn in axes.collections]
    assert points == [(40.0, 0.02), (60.0, 0.2)]

    _, first, second = axes.lines
    assert first.get_xydata().tolist() == [[40, -0.01], [40, 0.05]]
    assert second.get_xydata().tolist() == [[60, 0.1], [60, 0.3]]

    [legend] = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["Model m", "Model n", "Quiz", "Exam"]
    with pytest.raises(ValueError, match="contrast AUC of both"):
        headroom_figure(rows.iloc[2:], **LABELS)

"""Headroom of a verifier: sign and interval, and the error rate of its backbone."""

import numpy as np
import pandas as pd
import pytest
from draw_gcm_headroom import draw_gcm_headroom
from measure_headroom import measure_headroom

from persistcal import artifacts
from persistcal.analyses.headroom import contrast_questions, headroom
from persistcal.report.analysis_figures import headroom_figure

LABELS = {
    "models": {"m": "Model m", "n": "Model n", "unused": "Unused"},
    "datasets": {"d": "Quiz", "e": "Exam"},
    "estimators": {"gcm": "GCM", "oracle": "Oracle training"},
}


def significance(best, other, values, metric="auc", conditioning="odds"):
    return pd.DataFrame(
        {
            "model": "m",
            "dataset": "d",
            "train_dataset": "d",
            "block": "gcm+oracle",
            "conditioning": conditioning,
            "scope": "contrast",
            "metric": metric,
            "best": best,
            "other": other,
            "difference": values[0],
            "lower_5pct": values[1],
            "significant": values[1] > 0,
            "lower_2_5pct": values[2],
            "upper_97_5pct": values[3],
            "p_value": 0.5,
            "p_holm": 0.5,
        },
        index=[0],
    )


def read_off(table):
    return headroom(table, "gcm+oracle", dataset="d", verifier="gcm", oracle="oracle")


def test_headroom_is_oracle_minus_verifier_whoever_is_best():
    values = (0.05, 0.01, -0.01, 0.10)
    others = [
        significance("oracle", "gcm", (0.9,) * 4, metric="delta"),
        significance("oracle", "gcm", (0.9,) * 4, conditioning="fitted"),
        significance("oracle", "gcm", (0.9,) * 4).assign(block="gcm+gcm_posthoc+oracle"),
    ]
    ahead = pd.concat([*others, significance("oracle", "gcm", values)])
    assert read_off(ahead) == (0.05, -0.01, 0.10)
    behind = pd.concat([*others, significance("gcm", "oracle", values)])
    assert read_off(behind) == (-0.05, -0.10, 0.01)


def test_undefined_headroom_is_not_an_untested_one():
    undefined = significance("oracle", "gcm", (0.1,) * 4, metric="brier")
    assert np.isnan(read_off(undefined)).all()
    with pytest.raises(ValueError, match=r"no test of block 'gcm\+oracle'"):
        read_off(undefined.assign(block="another"))


def predictions():
    """Correctness of q0 … q5 at x, y and z; x and z differ on q0, q1, q4, others less."""
    correct = {"x": [0, 0, 1, 0, 1, 0], "y": [0, 0, 1, 1, 1, 0], "z": [1, 1, 1, 1, 0, 0]}
    return pd.concat(
        pd.DataFrame(
            {
                "checkpoint": checkpoint,
                "question_id": [f"q{i}" for i in range(6)],
                "train_dataset": "d",
                "estimator": "gcm",
                "seed": 0,
                "confidence": 0.5,
                "correct": np.array(values, bool),
            }
        )
        for checkpoint, values in correct.items()
    )


def test_contrast_questions_are_of_kept_pairs():
    # x-y: q3; x-z: q0 q1 q3 q4; y-z: q0 q1 q4
    order = ["x", "y", "z"]
    assert contrast_questions(predictions(), order, min_contrast=5) == []
    assert contrast_questions(predictions(), order, min_contrast=4) == ["q0", "q1", "q3", "q4"]
    only = predictions()[lambda p: p["checkpoint"] != "x"]
    assert contrast_questions(only, ["y", "z"], min_contrast=1) == ["q0", "q1", "q4"]


def test_from_files_to_figure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    artifacts.write(predictions(), "predictions", artifacts.PREDICTIONS)
    values = (0.05, 0.01, -0.01, 0.10)
    artifacts.write(
        significance("gcm", "oracle", values), "significance", artifacts.SIGNIFICANCE
    )
    ids = [f"q{i}" for i in range(6)]
    questions = pd.DataFrame(
        {
            "question_id": ids,
            "index": range(6),
            "split": "test",
            "question": "?",
            "references": [["a"]] * 6,
            "any_of": False,
            "category": "",
            "excluded": False,
        }
    )
    artifacts.write(questions, "questions", artifacts.QUESTIONS)
    # The backbone knows q0 and q5, is wrong on q1 and q3, and does not answer q4.
    rows = [(i, 0, "a", 0.5, ["a"]) for i in ids if i != "q4"]
    clusters = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
    labels = clusters[["question_id", "cluster"]].assign(
        label=["correct", "incorrect", "correct", "not_attempted", "correct"], source="lexical"
    )
    artifacts.write(clusters, "clusters", artifacts.CLUSTERS)
    artifacts.write(labels, "labels", artifacts.LABELS)
    measure_headroom(
        *("predictions", "significance", "questions", "clusters", "labels", "headroom.csv"),
        model="m",
        dataset="d",
        checkpoints=["x", "y", "z"],
        min_contrast=3,
        verifier="gcm",
        oracle="oracle",
    )
    (row,) = artifacts.read_csv("headroom.csv", artifacts.HEADROOM).to_dict("records")
    assert row == {
        "model": "m",
        "dataset": "d",
        "headroom": -0.05,
        "lower_2_5pct": -0.10,
        "upper_97_5pct": 0.01,
        "error_rate": 0.75,  # of q0, q1, q3 and q4 it knows q0
        "n": 4,
    }
    for name in ("once", "again"):
        draw_gcm_headroom(
            ["headroom.csv"],
            f"{name}.pdf",
            f"{name}.png",
            verifier="gcm",
            oracle="oracle",
            labels=LABELS,
        )
    for kind in ("pdf", "png"):
        once, again = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("once", "again"))
        assert once == again


def test_figure():
    rows = pd.DataFrame(
        [
            ("m", "d", 0.02, -0.01, 0.05, 0.4, 100),
            ("n", "e", 0.2, 0.1, 0.3, 0.6, 100),
            ("n", "d", None, None, None, 0.6, 0),
        ],
        columns=artifacts.HEADROOM.schema.names,
    )
    names = {"models": LABELS["models"], "datasets": LABELS["datasets"]}
    figure = headroom_figure(rows, **names, verifier="GCM", oracle="Oracle")
    (axes,) = figure.axes
    points = [tuple(drawn.get_offsets()[0]) for drawn in axes.collections]
    assert points == [(40.0, 0.02), (60.0, 0.2)]
    _, first, second = axes.lines
    assert first.get_xydata().tolist() == [[40, -0.01], [40, 0.05]]
    assert second.get_xydata().tolist() == [[60, 0.1], [60, 0.3]]
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["Model m", "Model n", "Quiz", "Exam"]
    with pytest.raises(ValueError, match="contrast AUC of both"):
        headroom_figure(rows.iloc[2:], **names, verifier="GCM", oracle="Oracle")

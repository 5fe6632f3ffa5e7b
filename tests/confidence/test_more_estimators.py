"""Estimators that are beyond the paper: sequence probability and a linear probe."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from answer_tables import clusters_table, questions_table
from estimate_linear_probe import estimate_linear_probe
from estimate_sequence_probability import estimate_sequence_probability
from scipy.optimize import minimize
from tiny_models import tiny_model, tiny_tokenizer

from persistcal import artifacts
from persistcal.confidence.probe import PENALTY, fit_probe, probe_confidence

torch.set_num_threads(1)


def test_sequence_probability(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beams = [
        ("q1", 0, " Peru", -0.5),
        ("q1", 1, " Chad", -1.0),
        ("q1", 2, " chad", -1.2),  # joins the cluster of " Chad", which wins with it
        ("q2", 0, "", -0.1),  # no answer
        ("q2", 1, " Oslo", -2.0),
        ("q2", 2, "Oslo ", -1.5),  # the same answer from better tokens
        ("q3", 0, " Rome", 1e-9),
    ]
    clusters = [
        ("q1", 0, "Chad", 0.6, ["Chad", "chad"]),
        ("q1", 1, "Peru", 0.4, ["Peru"]),
        ("q2", 0, "Oslo", 0.9, ["Oslo"]),
        ("q3", 0, "Rome", 1.0, ["Rome"]),
    ]
    for table, rows in ((artifacts.BEAMS, beams), (artifacts.CLUSTERS, clusters)):
        frame = pd.DataFrame(rows, columns=table.schema.names)
        artifacts.write(frame, f"{table.name}.parquet", table)
    estimate_sequence_probability(
        ["beams.parquet"], ["clusters.parquet"], "c/atlas/x.parquet", checkpoints=["late"]
    )
    confidences = artifacts.read("c/atlas/x.parquet", artifacts.CONFIDENCES)
    assert confidences["question_id"].tolist() == ["q1", "q2", "q3"]
    expected = [np.exp(-1.0), np.exp(-1.5), 1.0]
    assert confidences["confidence"].tolist() == pytest.approx(expected)
    assert confidences["confidence"].max() <= 1
    assert set(confidences["train_dataset"]) == {"atlas"}


def test_probe_minimises_the_penalised_loss():
    rng = np.random.default_rng(0)
    states = rng.normal(3, 2, (200, 4)) * [1, 10, 0.1, 1]
    correct = (states[:, 0] + rng.normal(0, 1, 200) > 3).astype(int)
    standard = (states - states.mean(0)) / states.std(0)

    def loss(parameters):
        logit = standard @ parameters[:4] + parameters[4]
        fit = np.logaddexp(0, np.where(correct, -logit, logit)).sum()
        return fit + PENALTY / 2 * (parameters[:4] ** 2).sum()

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    expected = 1 / (1 + np.exp(-(standard @ best[:4] + best[4])))
    confidence = probe_confidence(fit_probe(states, correct), states)
    np.testing.assert_allclose(confidence, expected, atol=1e-3)
    assert np.ptp(confidence) > 0.2


def test_a_probe_that_saw_one_label_knows_no_other():
    assert probe_confidence(fit_probe(np.eye(3), [0, 0, 0]), np.eye(3)).tolist() == [0, 0, 0]
    assert probe_confidence(fit_probe(np.eye(3), [1, 1, 1]), np.eye(3)).tolist() == [1, 1, 1]


def test_linear_probe_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = questions_table()
    artifacts.write(questions, "questions.parquet", artifacts.QUESTIONS)
    checkpoints = ["first", "second", "late"]
    for seed, name in enumerate(checkpoints):
        tiny_model(seed=seed).save_pretrained(name)
        tiny_tokenizer().save_pretrained(name)
        record = {"repo": name, "revision": None, "commit": None, "dtype": "float32"}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
        clusters = clusters_table((f"Norway{seed}", "Peru"))
        artifacts.write(clusters, f"clusters/{name}.parquet", artifacts.CLUSTERS)
        right = clusters["question_id"].str[1:].astype(int) % (seed + 2) == 0
        labels = clusters[["question_id", "cluster"]].assign(source="lexical")
        labels["label"] = np.where(right, "correct", "incorrect")
        artifacts.write(labels, f"labels/{name}.parquet", artifacts.LABELS)
    estimate_linear_probe(
        [f"{name}.json" for name in checkpoints],
        "questions.parquet",
        [f"clusters/{name}.parquet" for name in checkpoints],
        [f"labels/{name}.parquet" for name in checkpoints],
        "c/atlas/probe.parquet",
        checkpoints=checkpoints,
        earlier=["first", "second"],
        threads=1,
    )
    confidences = artifacts.read("c/atlas/probe.parquet", artifacts.CONFIDENCES)

    def state(seed, question):
        """Of the first of two blocks, by the model's own list of hidden states."""
        ids = tiny_tokenizer()(f"Prompt: {question}\nAnswer: Norway{seed}")["input_ids"]
        with torch.inference_mode():
            output = tiny_model(seed=seed)(torch.tensor([ids]), output_hidden_states=True)
        return output.hidden_states[1][0, -1].numpy()

    asked = dict(questions[["question_id", "question"]].values)
    train = [(seed, i) for seed in (0, 1) for i in range(18)]
    probe = fit_probe(
        [state(seed, asked[f"q{i}"]) for seed, i in train],
        [i % (seed + 2) == 0 for seed, i in train],
    )
    tested = ["q18", "q19", "q21", "q22", "q23"]
    assert confidences["question_id"].tolist() == tested
    assert set(confidences["checkpoint"]) == {"late"}
    expected = probe_confidence(probe, [state(2, asked[name]) for name in tested])
    np.testing.assert_allclose(confidences["confidence"], expected, atol=1e-5)

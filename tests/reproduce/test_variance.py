"""Variance of hidden states over seeds, against numpy on all states at once."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from correlate_variance import correlate_variance
from measure_variance import measure_variance, variances_over_adapters
from peft import PeftModel
from records import write_record
from scipy.stats import spearmanr
from tiny_models import TEMPLATE, prompts_to_rate, save_tiny, tiny_model

from persistcal.models.packing import last_hidden_states
from persistcal.store import artifacts
from persistcal.training.train import adapter_files, initialise, share_adapter
from reproduce import transfer

torch.set_num_threads(1)
SEEDS = (17, 18, 19)


def test_correlations_with_the_order_of_training_equal_scipys():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 4, (7, 50)).astype(float)  # with ties
    values[:, 3] = 2.0
    values[4, 5] = np.nan
    expected = [spearmanr(np.arange(7), column).statistic for column in values.T]
    np.testing.assert_allclose(
        transfer.order_correlations(values), expected, rtol=0, atol=1e-12
    )
    assert np.isnan(transfer.order_correlations(values)[[3, 5]]).all()
    # Ranks (1.5, 1.5, 3, 4) against (1, 2, 3, 4): 4.5 / sqrt(4.5 * 5)
    tied = transfer.order_correlations(np.array([0.0, 0.0, 1.0, 2.0])[:, None])
    assert tied == pytest.approx(4.5 / np.sqrt(22.5))


def test_correlations_are_summarised_over_questions_that_all_checkpoints_have():
    # Layer 1: a rises (rho 1), b falls (-1), c rises with one swap (0.5), d is missing once.
    # Layer 2: a and b are constant, c rises (1).
    first = np.array([[1, 5], [3, 5], [1, 1], [0, 0]])
    second = np.array([[2, 5], [2, 5], [3, 2], [1, 1]])
    third = np.array([[3, 5], [1, 5], [2, 3], [2, 2]])
    tables = [
        transfer.variance_table(list("abcd"), values / 10) for values in (first, second, third)
    ]
    tables[1] = tables[1][tables[1]["question_id"] != "d"].iloc[::-1]
    named = zip(("z", "y", "x"), tables, strict=True)  # in order of training, not of names
    rows = pd.concat(table.assign(checkpoint=name) for name, table in named)
    summary = transfer.correlations_by_layer(rows.assign(model="m", dataset="quiz"))
    assert summary.to_dict("list") == {
        "model": ["m", "m"],
        "dataset": ["quiz", "quiz"],
        "layer": [1, 2],
        "mean_rho": [pytest.approx(0.5 / 3), pytest.approx(1)],
        "median_rho": [pytest.approx(0.5), pytest.approx(1)],
        "n": [3, 1],
    }


def save_adapters(folder):
    """Save adapters with random A and B, because the initial B = 0 changes no state."""
    paths = []
    adapter = share_adapter([tiny_model()], rank=4, alpha=8)
    for seed in SEEDS:
        initialise(adapter, seed)
        torch.manual_seed(seed)
        for name, parameter in adapter.items():
            if name.endswith("lora_B"):
                parameter.data.normal_(0, 0.05)
        place = Path(folder) / f"seed{seed}"
        place.mkdir(parents=True)
        files = adapter_files(adapter, rank=4, alpha=8, base_model="early")
        for name, content in files.items():
            (place / name).write_bytes(content)
        paths.append(place / "adapter_model.safetensors")
    return paths


def all_at_once(folder):
    """Return the population variance over all states, and a model with one adapter."""
    states = []
    for seed in SEEDS:
        model = PeftModel.from_pretrained(tiny_model(), Path(folder) / f"seed{seed}")
        base = model.get_base_model()
        rows = [last_hidden_states(base, [prompt])[:, 0] for prompt in prompts_to_rate()]
        states.append(torch.stack(rows).double().cpu().numpy())
    return np.var(np.stack(states), axis=0).sum(-1), model


def test_variances_are_measured_from_files_and_correlated_in_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = save_adapters("adapters")
    save_tiny("early")
    rows = [
        (f"q{i}", "train" if i == 8 else "test", f"Where is {'x' * i}?", i == 7)
        for i in range(9)
    ]
    columns = ["question_id", "split", "question", "excluded"]
    questions = pd.DataFrame(rows, columns=columns)
    answers = ["Norway" if i % 2 else "Peru" for i in range(9)]
    clusters = questions[["question_id"]].assign(cluster=0, answer=answers, probability=0.5)
    variances = measure_variance(
        write_record("early", "early.json"),
        questions,
        clusters,
        paths,
        prompt=TEMPLATE,
        last_layer="after_norm",
        batch_size=3,  # for 7 prompts
        dtype="stored",
    )
    artifacts.check(variances, artifacts.VARIANCES, "variances")
    wide = variances.pivot(index="question_id", columns="layer", values="variance")
    assert wide.columns.tolist() == [1, 2]
    assert wide.index.tolist() == [f"q{i}" for i in range(7)]
    expected, model = all_at_once("adapters")
    assert expected.min() > 1e-3
    np.testing.assert_allclose(wide, expected, rtol=1e-3)
    with pytest.raises(ValueError, match="at least two"):
        variances_over_adapters(model, prompts_to_rate(), batch_size=2)

    late = variances.assign(
        variance=variances["variance"] * np.where(variances["layer"] == 1, 2, 0.5)
    )
    rows_of_both = pd.concat(
        [variances.assign(checkpoint="early"), late.assign(checkpoint="late")]
    )
    text, table = correlate_variance(
        rows_of_both.assign(model="m", dataset="quiz"),
        labels={"models": {"m": "Model m"}, "datasets": {"quiz": "Quiz"}},
        last_layer="after_norm",
    )
    assert table["layer"].tolist() == [1, 2] and table["n"].tolist() == [7, 7]
    np.testing.assert_allclose(table[["mean_rho", "median_rho"]], [[1, 1], [-1, -1]])
    assert "Layer & Mean $\\rho$ & Median $\\rho$ \\\\\n\\midrule\n1 & 1.000 & 1.000" in text
    assert "2 & $-$1.000" in text and "Model m, Quiz" in text
    assert "The last layer is taken after the model's final norm." in text

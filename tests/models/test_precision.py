"""Models that compute in float32 with weights in bfloat16."""

import copy
import json

import numpy as np
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import NAMES, adapters_job, scores_job
from records import write_record
from safetensors.torch import load_file
from tiny_models import tiny_model

from persistcal.models.load import compute_in_float32, load_model
from persistcal.store import artifacts
from persistcal.training.train import initialise, share_adapter

torch.set_num_threads(1)
TOKENS = torch.tensor([[5, 9, 200, 7, 31, 31, 8]])
PRECISIONS = [("float32", "stored"), ("bfloat16", "stored"), ("bfloat16", "float32")]


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_logits_and_gradients_equal_those_of_the_model_in_float32(kind):
    stored = tiny_model(kind, dtype=torch.bfloat16)
    exact = copy.deepcopy(stored).float()
    mixed = compute_in_float32(stored)
    with torch.no_grad():
        assert torch.equal(mixed(TOKENS).logits, exact(TOKENS).logits)
        assert exact(TOKENS).logits.dtype == torch.float32
    # Only the matrices of linear layers stay in bfloat16, and not the head.
    bfloat16_weights = {n for n, p in mixed.named_parameters() if p.dtype == torch.bfloat16}

    assert bfloat16_weights == {
        n for n, _ in mixed.named_parameters() if n.endswith("_proj.weight")
    }
    gradients = []
    for model in (mixed, exact):
        adapter = share_adapter([model], rank=4, alpha=8)
        initialise(adapter, 17)
        model(TOKENS).logits.square().sum().backward()
        gradients.append({name: parameter.grad for name, parameter in adapter.items()})

    torch.testing.assert_close(*gradients, rtol=0, atol=0)
    assert gradients[0]["model.layers.0.mlp.up_proj.lora_B"].abs().max() > 0


def test_jobs_with_weights_in_bfloat16_train_and_score_as_in_float32(tmp_path):
    write_checkpoints(tmp_path, NAMES)
    results = {}
    for name in NAMES:  # weights without rounding errors in bfloat16
        model = load_model(str(tmp_path / name), device="cpu")
        model.bfloat16().float().save_pretrained(tmp_path / name)
        write_record(tmp_path / name, tmp_path / f"{name}.json")
    for dtype, training_dtype in PRECISIONS:
        for name in NAMES:
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": dtype}))
        adapter = tmp_path / "adapters/seed17/adapter_model.safetensors"
        adapters_job(tmp_path, adapter, dtype=training_dtype, epochs=1, batch_size=9)
        scores_job(tmp_path, tmp_path / "scores.parquet", dtype=training_dtype)
        scores = artifacts.read(tmp_path / "scores.parquet", artifacts.SCORES)
        tensors = [tensor.flatten() for _, tensor in sorted(load_file(adapter).items())]
        weights = torch.cat(tensors).numpy().tobytes()
        results[dtype, training_dtype] = weights, scores["confidence"].to_numpy()
    weights, scores = results["float32", "stored"]

    assert results["bfloat16", "float32"][0] == weights != results["bfloat16", "stored"][0]
    np.testing.assert_array_equal(results["bfloat16", "float32"][1], scores)
    assert np.abs(results["bfloat16", "stored"][1] - scores).max() > 1e-4

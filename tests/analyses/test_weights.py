"""Cosine similarity of weights, against vectors that are flattened at once."""

from pathlib import Path

import numpy as np
import pytest
import torch
from compare_weights import compare_weights
from safetensors.torch import save_file

from persistcal.analyses import weights
from persistcal.models.checkpoint import Checkpoint
from persistcal.report.tables import weight_similarity
from persistcal.store import artifacts
from persistcal.store.files import sha256

SHAPES = {"embed": (50, 8), "block.cube": (6, 5, 4), "norm": (8,), "scale": ()}
CHECKPOINTS = ["early", "middle", "late"]


def tensors(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=generator).to(dtype) + 0.3 for n, s in SHAPES.items()}


def save(name, shards, dtype=torch.bfloat16):
    """Save a checkpoint in two shards, with a buffer, and its record."""
    found = tensors(CHECKPOINTS.index(name), dtype)
    Path(name).mkdir()
    files = {"a.safetensors": {}, "b.safetensors": {"positions": torch.arange(7)}}
    for tensor, value in found.items():
        files[shards[tensor]][tensor] = value
    for file, content in files.items():
        save_file(content, f"{name}/{file}")
    weights = {file: sha256(f"{name}/{file}") for file in files}
    Checkpoint(name, name, None, weights).write(f"{name}.json")
    return np.concatenate([found[n].double().flatten().numpy() for n in sorted(found)])


def test_from_files_to_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(weights, "PIECE", 24)  # rows of `embed` are read by three, in 17 pieces
    shards = dict(zip(SHAPES, ["a.safetensors", "b.safetensors"] * 2, strict=True))
    other = dict(zip(SHAPES, ["b.safetensors"] * 4, strict=True))
    flat = {
        "early": save("early", shards),
        "middle": save("middle", other),  # what is where differs between checkpoints
        "late": save("late", shards, dtype=torch.float32),
    }
    rows = compare_weights([Checkpoint.read(f"{name}.json") for name in CHECKPOINTS])
    artifacts.WEIGHT_SIMILARITIES.write(rows, "similarities.csv", {"model": "m"})
    found = artifacts.read_csv("similarities.csv", artifacts.WEIGHT_SIMILARITIES)
    pairs = [("early", "middle"), ("early", "late"), ("middle", "late")]
    assert list(zip(found["earlier"], found["later"], strict=True)) == pairs
    expected = [
        flat[a] @ flat[b] / np.linalg.norm(flat[a]) / np.linalg.norm(flat[b]) for a, b in pairs
    ]
    np.testing.assert_allclose(found["cosine"], expected, rtol=1e-12)
    assert set(found["n_weights"]) == {50 * 8 + 6 * 5 * 4 + 8 + 1}

    # `int8` is rounded when it is loaded: no file has its weights
    labels = {"m": {"early": "10%", "int8": "-", "middle": "20%", "late": "100%"}}
    text, rows = weight_similarity(found, all_checkpoints=labels, models={"m": "Model m"})
    first, second, third = (f"{value:.3f}" for value in expected)
    assert " & 20\\% & 100\\% \\\\\n\\midrule\n" in text
    assert f"10\\% & {first} & {second} \\\\\n20\\% &  & {third} \\\\\n\\bottomrule" in text
    assert rows.equals(found)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"w": (9,)}, r"'w' is \(8,\) in checkpoint 'a' and \(9,\) in 'c'"),
        ({"w": (8,), "more": (3,)}, r"'more' is missing in checkpoint 'a' and \(3,\) in 'c'"),
    ],
)
def test_another_architecture_is_refused(other, message):
    shapes = {"a": {"w": (8,)}, "b": {"w": (8,)}, "c": other}
    stored = {
        checkpoint: {name: weights.StoredTensor(shape, None) for name, shape in of.items()}
        for checkpoint, of in shapes.items()
    }
    with pytest.raises(ValueError, match=message):
        weights.weight_similarities(stored)

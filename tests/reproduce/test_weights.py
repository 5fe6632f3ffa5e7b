"""Cosine similarity of weights, against numpy on flattened vectors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from compare_weights import compare_weights
from safetensors.torch import save_file

from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from persistcal.store.files import sha256
from reproduce import weights
from reproduce.tables import weight_similarity

SHAPES = {"embed": (50, 8), "block.cube": (6, 5, 4), "norm": (8,), "scale": ()}
CHECKPOINTS = ["early", "middle", "late"]


def tensors(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=generator).to(dtype) + 0.3 for n, s in SHAPES.items()}


def save(name, shards, dtype=torch.bfloat16):
    """Save a checkpoint of two shards with a buffer, and return the flat weights."""
    values = tensors(CHECKPOINTS.index(name), dtype)
    Path(name).mkdir()
    files = {"a.safetensors": {}, "b.safetensors": {"positions": torch.arange(7)}}
    for tensor, value in values.items():
        files[shards[tensor]][tensor] = value
    for file, content in files.items():
        save_file(content, f"{name}/{file}")
    weights = {file: sha256(f"{name}/{file}") for file in files}
    Checkpoint(name, name, None, weights).write(f"{name}.json")
    return np.concatenate([values[n].double().flatten().numpy() for n in sorted(values)])


def test_similarities_of_weights_do_not_depend_on_shards_or_pieces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(weights, "PIECE", 24)  # rows of `embed` are read by three, in 17 pieces
    shards = dict(zip(SHAPES, ["a.safetensors", "b.safetensors"] * 2, strict=True))
    moved = dict(zip(SHAPES, ["b.safetensors"] * 4, strict=True))
    flat = {
        "early": save("early", shards),
        "middle": save("middle", moved),  # tensors are in other shards
        "late": save("late", shards, dtype=torch.float32),
    }
    rows = compare_weights([Checkpoint.read(f"{name}.json") for name in CHECKPOINTS])
    artifacts.WEIGHT_SIMILARITIES.write(rows, "similarities.csv", {"model": "m"})
    rows_read = artifacts.read_csv("similarities.csv", artifacts.WEIGHT_SIMILARITIES)
    pairs = [("early", "middle"), ("early", "late"), ("middle", "late")]
    assert list(zip(rows_read["earlier"], rows_read["later"], strict=True)) == pairs
    expected = [
        flat[a] @ flat[b] / np.linalg.norm(flat[a]) / np.linalg.norm(flat[b]) for a, b in pairs
    ]
    np.testing.assert_allclose(rows_read["cosine"], expected, rtol=1e-12)
    assert set(rows_read["n_weights"]) == {50 * 8 + 6 * 5 * 4 + 8 + 1}

    # `int8` is rounded while loading, so its row is left out.
    labels = {"m": {"early": "10%", "int8": "-", "middle": "20%", "late": "100%"}}
    text, rows = weight_similarity(rows_read, all_checkpoints=labels, models={"m": "Model m"})
    first, second, third = (f"{value:.3f}" for value in expected)
    assert " & 20\\% & 100\\% \\\\\n\\midrule\n" in text
    assert f"10\\% & {first} & {second} \\\\\n20\\% &  & {third} \\\\\n\\bottomrule" in text
    assert rows.equals(rows_read)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"w": (9,)}, r"'w' is \(8,\) in checkpoint 'a' and \(9,\) in 'c'"),
        ({"w": (8,), "more": (3,)}, r"'more' is missing in checkpoint 'a' and \(3,\) in 'c'"),
    ],
)
def test_checkpoints_of_different_architectures_are_refused(tensors, message):
    shapes = {"a": {"w": (8,)}, "b": {"w": (8,)}, "c": tensors}
    stored = {
        checkpoint: {
            name: weights.StoredTensor(shape, None) for name, shape in shapes_of.items()
        }
        for checkpoint, shapes_of in shapes.items()
    }
    with pytest.raises(ValueError, match=message):
        weights.weight_similarities(stored)

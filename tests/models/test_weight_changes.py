"""Weights that a state changes in memory, against slow and obvious ways, and peft's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fetch_checkpoint import fetch_checkpoint
from merge_checkpoints import merge_checkpoints
from peft import LoraConfig, PeftModel, get_peft_model
from resolve_checkpoint import resolve_checkpoint
from tiny_models import save_tiny, tiny_model, tiny_tokenizer

from persistcal.models.checkpoint import Checkpoint, local_checkpoint
from persistcal.models.load import open_model, open_tokenizer
from persistcal.store.files import DamagedFileError
from persistcal.store.jobs import Job, execute

TOKENS = torch.tensor([[5, 9, 40, 41, 7]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models of one shape, a narrow one, and an adapter of the first as peft saves it."""
    folder = tmp_path_factory.mktemp("states")
    for name, seed, hidden in [("a", 0, 32), ("b", 1, 32), ("narrow", 2, 16)]:
        save_tiny(folder / "models" / name, seed=seed, hidden=hidden)
    torch.manual_seed(3)
    config = LoraConfig(r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    get_peft_model(tiny_model(), config).save_pretrained(folder / "adapters" / "main")
    return folder


@pytest.fixture
def record(folder):
    return lambda name: local_checkpoint(folder / "models" / name)


def adapter(folder):
    return {"repo": str(folder / "adapters"), "revision": "main"}


def fetched(folder, path, name, **beside):
    """Return the record that the two rules make of a local model."""
    record, revision = str(path / "c.json"), {"revision": str(path / "tiny" / f"{name}.json")}
    settings = {"repo": str(folder / "models"), "revision": name, "record": record}
    settings["beside_weights"] = beside
    execute(resolve_checkpoint, Job({}, revision, settings, threads=1))
    outputs = {"checkpoint": record}
    execute(fetch_checkpoint, Job(revision, outputs, {"dtype": None}, threads=1))
    return Checkpoint.read(record)


def merged(path, merge, parts, **beside):
    inputs = {"parts": [str(path / f"{name}.json") for name in merge]}
    for file, part in zip(inputs["parts"], parts, strict=True):
        part.write(file)
    settings = {"merge": merge, "dtype": None, "beside_weights": beside}
    settings["key"] = "models.m.merge"
    outputs = {"checkpoint": str(path / "merged.json")}
    execute(merge_checkpoints, Job(inputs, outputs, settings, threads=1))
    return Checkpoint.read(path / "merged.json")


def weights_of(checkpoint):
    return {name: p.numpy() for name, p in open_model(checkpoint).named_parameters()}


@pytest.mark.parametrize(("first", "second"), [(0.25, 0.75), (2, -1)])
def test_an_average_is_that_of_each_weight(tmp_path, record, first, second):
    """2 a - b: a task vector, here of what leads from b to a, added once more."""
    made = merged(tmp_path, {"a": first, "b": second}, [record("a"), record("b")])
    one, two, both = (weights_of(c) for c in (record("a"), record("b"), made))
    for name, weight in both.items():
        np.testing.assert_allclose(weight, first * one[name] + second * two[name], atol=1e-6)
    assert open_tokenizer(made).get_vocab() == tiny_tokenizer().get_vocab()


def test_an_adapter_in_the_weights_says_what_peft_says(tmp_path, folder):
    made = fetched(folder, tmp_path, "a", adapter=adapter(folder))
    plain = tiny_model()
    beside = PeftModel.from_pretrained(plain, folder / "adapters" / "main").eval()
    with torch.inference_mode():
        expected = beside(TOKENS).logits
        torch.testing.assert_close(open_model(made)(TOKENS).logits, expected, rtol=0, atol=1e-4)
        assert (tiny_model()(TOKENS).logits - expected).abs().max() > 0.01
    weights = folder / "adapters" / "main" / "adapter_model.safetensors"
    assert made.adapter.weights == local_checkpoint(weights.parent).weights
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    said = r"adapter_model.safetensors is not the file that"
    with pytest.raises(DamagedFileError, match=said):
        open_model(made)
    weights.write_bytes(content)


def rounded_slowly(weight, bits, size):
    """Weight by weight: the nearest step of the grid of its group."""
    most, rounded = 2 ** (bits - 1), np.empty_like(weight)
    for row in range(weight.shape[0]):
        for start in range(0, weight.shape[1], size):
            group = weight[row, start : start + size]
            step = np.float32(max(abs(group)) / (most - 0.5))
            grid = np.arange(-most, most, dtype=np.float32) * step
            for place, value in enumerate(group):
                rounded[row, start + place] = grid[np.argmin(abs(grid - value))]
    return rounded


@pytest.mark.parametrize(("kind", "bits", "size"), [("int8", 8, 64), ("int4", 4, 32)])
def test_rounding_takes_the_nearest_step(tmp_path, folder, record, kind, bits, size):
    made = fetched(folder, tmp_path, "a", quantization=kind)
    before, after = weights_of(record("a")), weights_of(made)
    name = "model.layers.1.mlp.down_proj.weight"  # of 64 inputs
    slowly = rounded_slowly(before[name], bits, size)
    step = abs(before[name]).max() / (2 ** (bits - 1) - 0.5)
    # At half a step, and there alone, the next one is as near.
    differ = abs(after[name] - slowly) > 1e-6
    assert differ.mean() < 0.01
    assert abs(after[name] - before[name]).max() <= step * 0.5001
    for other in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        np.testing.assert_array_equal(after[other], before[other])


def test_changes_come_one_on_top_of_the_other(tmp_path, folder, record):
    beside = {"adapter": adapter(folder), "quantization": "int8"}
    made = merged(tmp_path, {"a": 1}, [record("a")], **beside)
    assert made.content()["changes"].keys() == {"merge", "adapter", "quantization"}
    both = weights_of(made)
    alone = weights_of(replace(made, changes={**made.changes, "quantization": None}))
    name = "model.layers.0.self_attn.q_proj.weight"
    slowly = rounded_slowly(alone[name], 8, 32)
    assert (abs(both[name] - slowly) > 1e-6).mean() < 0.01


def test_a_merge_of_unequal_shapes_is_refused(tmp_path, record):
    said = r"models.m.merge cannot be averaged: model.embed_tokens.weight is \(300, 32\) in a "
    with pytest.raises(DamagedFileError, match=said + r"and \(300, 16\) in n"):
        merged(tmp_path, {"a": 0.5, "n": 0.5}, [record("a"), record("narrow")])


def test_an_adapter_of_another_base_and_parts_of_groups_are_refused(tmp_path, folder):
    said = r"is for another base .*changes 64 inputs of .*down_proj, .*has 32"
    with pytest.raises(DamagedFileError, match=said):
        fetched(folder, tmp_path, "narrow", adapter=adapter(folder))
    said = r"takes groups of 32 inputs, but .* has 16; set it"
    with pytest.raises(DamagedFileError, match=said):
        fetched(folder, tmp_path, "narrow", quantization="int4")

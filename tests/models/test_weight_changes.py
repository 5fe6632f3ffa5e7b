"""Weights that are changed when loaded, against slow implementations and peft."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from fetch_checkpoint import fetch_checkpoint
from merge_checkpoints import merge_checkpoints
from peft import LoraConfig, PeftModel, get_peft_model
from records import resolve
from tiny_models import save_tiny, tiny_model, tiny_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from persistcal.models.checkpoint import Checkpoint, local_checkpoint
from persistcal.models.load import (
    average_weights,
    load_adapter,
    merge_adapter,
    open_model,
    open_tokenizer,
    round_weights,
)
from persistcal.store.files import DamagedFileError
from persistcal.store.jobs import Job, execute

TOKENS = torch.tensor([[5, 9, 40, 41, 7]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Save two models of one shape, a narrow one, and an adapter of the first by peft."""
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


def fetch(folder, path, name, **changes):
    """Resolve and fetch a local model by the rules and return its record."""
    record, revision = str(path / "c.json"), {"revision": str(path / "tiny" / f"{name}.json")}
    resolve(revision["revision"], record, folder / "models", name, beside_weights=changes)
    outputs = {"checkpoint": record}
    execute(fetch_checkpoint, Job(revision, outputs, {"dtype": None}, threads=1))
    return Checkpoint.read(record)


def run_merge(path, merge, parts, **changes):
    inputs = {"parts": [str(path / f"{name}.json") for name in merge]}
    for file, part in zip(inputs["parts"], parts, strict=True):
        part.write(file)
    settings = {"merge": merge, "dtype": None, "beside_weights": changes}
    settings["key"] = "models.m.merge"
    outputs = {"checkpoint": str(path / "merged.json")}
    execute(merge_checkpoints, Job(inputs, outputs, settings, threads=1))
    return Checkpoint.read(path / "merged.json")


def weights_of(checkpoint):
    return {name: p.numpy() for name, p in open_model(checkpoint).named_parameters()}


@pytest.mark.parametrize(("first", "second"), [(0.25, 0.75), (2, -1)])
def test_a_merge_is_the_weighted_average_of_each_weight(tmp_path, record, first, second):
    """2 a - b adds the task vector from b to a a second time."""
    checkpoint = run_merge(tmp_path, {"a": first, "b": second}, [record("a"), record("b")])
    weights_a, weights_b, weights = (
        weights_of(c) for c in (record("a"), record("b"), checkpoint)
    )
    for name, weight in weights.items():
        np.testing.assert_allclose(
            weight, first * weights_a[name] + second * weights_b[name], atol=1e-6
        )
    assert open_tokenizer(checkpoint).get_vocab() == tiny_tokenizer().get_vocab()


def test_an_adapter_added_to_the_weights_gives_the_logits_of_peft(tmp_path, folder):
    checkpoint = fetch(folder, tmp_path, "a", adapter=adapter(folder))
    plain = tiny_model()
    peft_model = PeftModel.from_pretrained(plain, folder / "adapters" / "main").eval()
    with torch.inference_mode():
        expected = peft_model(TOKENS).logits
        torch.testing.assert_close(
            open_model(checkpoint)(TOKENS).logits, expected, rtol=0, atol=1e-4
        )
        assert (tiny_model()(TOKENS).logits - expected).abs().max() > 0.01
    weights = folder / "adapters" / "main" / "adapter_model.safetensors"
    assert checkpoint.adapter.weights == local_checkpoint(weights.parent).weights
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    message = r"adapter_model.safetensors is not the file that"
    with pytest.raises(DamagedFileError, match=message):
        open_model(checkpoint)
    weights.write_bytes(content)


HEAD = {"target_modules": ["lm_head", "q_proj"]}
ADAPTERS = {
    "head": HEAD,
    "embeddings": {"target_modules": ["embed_tokens"]},
    "pattern and ranks": {"target_modules": ".*(head|q_proj)", "rank_pattern": {"lm_head": 5}},
    "DoRA": HEAD | {"use_dora": True},
    "parameters": {"target_modules": [], "target_parameters": ["lm_head.weight"]},
    "saved head": {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    "saved embeddings": HEAD | {"modules_to_save": ["embed_tokens"]},
    "tokens": {"target_modules": ["q_proj"], "trainable_token_indices": [5, 9]},
    "tokens of the head": {
        "target_modules": ["q_proj"],
        "trainable_token_indices": {"lm_head": [5, 9]},
    },
}


def tied_model(seed=0):
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": 300,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
    }
    config = LlamaConfig(num_hidden_layers=2, tie_word_embeddings=True, **sizes)
    return LlamaForCausalLM(config).eval()


def save_adapter(folder, settings):
    """Write an adapter of the tied model, and return its logits without merging."""
    adapted = get_peft_model(tied_model(), LoraConfig(r=2, init_lora_weights=False, **settings))
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter += 0.3 * torch.randn_like(parameter)
    adapted.save_pretrained(folder)
    with torch.inference_mode():
        return PeftModel.from_pretrained(tied_model(), folder).eval()(TOKENS).logits


@pytest.mark.filterwarnings("ignore:.*(tied|tie_word_embeddings|ensure_weight_tying)")
@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_on_tied_weights_gives_the_logits_of_peft(tmp_path, name):
    expected = save_adapter(tmp_path, ADAPTERS[name])
    model = merge_adapter(load_adapter(tied_model(), tmp_path), tmp_path)
    with torch.inference_mode():
        torch.testing.assert_close(model(TOKENS).logits, expected, rtol=1e-4, atol=1e-4)
    model.save_pretrained(tmp_path / "saved")  # as a change of the laboratory does
    again = LlamaForCausalLM.from_pretrained(tmp_path / "saved")
    torch.testing.assert_close(again(TOKENS).logits, model(TOKENS).logits)
    # its average with a model whose weights are tied still has two matrices
    plain = tied_model(1)
    for first, second in [(model, plain), (plain, copy.deepcopy(model))]:
        mean = average_weights(copy.deepcopy(first), 0.5, [(0.5, second)])
        for module in ("lm_head", "model.embed_tokens"):
            parts = [m.get_submodule(module).weight for m in (mean, model, plain)]
            torch.testing.assert_close(parts[0], (parts[1] + parts[2]) / 2)


@pytest.mark.filterwarnings("ignore:.*(tied|tie_word_embeddings|ensure_weight_tying)")
@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": ["q_proj"], "lora_bias": True},
        {"target_modules": ["q_proj"], "alora_invocation_tokens": [40, 41]},
        HEAD | {"trainable_token_indices": [5, 9]},
    ],
)
def test_an_adapter_that_cannot_be_merged_is_refused(tmp_path, settings):
    save_adapter(tmp_path, {**settings, "task_type": "CAUSAL_LM"})
    with pytest.raises(DamagedFileError, match=r"config.json: the adapter cannot be merged \("):
        merge_adapter(load_adapter(tied_model(), tmp_path), tmp_path)


def rounded_slowly(weight, bits, size):
    """Round weight by weight to the group's nearest step."""
    n_steps, rounded = 2 ** (bits - 1), np.empty_like(weight)
    for row in range(weight.shape[0]):
        for start in range(0, weight.shape[1], size):
            group = weight[row, start : start + size]
            step = np.float32(max(abs(group)) / (n_steps - 0.5))
            grid = np.arange(-n_steps, n_steps, dtype=np.float32) * step
            for i, value in enumerate(group):
                rounded[row, start + i] = grid[np.argmin(abs(grid - value))]
    return rounded


@pytest.mark.parametrize(("kind", "bits", "size"), [("int8", 8, 64), ("int4", 4, 32)])
def test_quantization_rounds_to_the_nearest_step(tmp_path, folder, record, kind, bits, size):
    checkpoint = fetch(folder, tmp_path, "a", quantization=kind)
    original, rounded_weights = weights_of(record("a")), weights_of(checkpoint)
    name = "model.layers.1.mlp.down_proj.weight"  # it has 64 inputs
    expected = rounded_slowly(original[name], bits, size)
    step = abs(original[name]).max() / (2 ** (bits - 1) - 0.5)
    # Exactly between two steps both are equally near.
    differ = abs(rounded_weights[name] - expected) > 1e-6
    assert differ.mean() < 0.01
    assert abs(rounded_weights[name] - original[name]).max() <= step * 0.5001
    for name_of_unchanged in (
        "model.embed_tokens.weight",
        "lm_head.weight",
        "model.norm.weight",
    ):
        np.testing.assert_array_equal(
            rounded_weights[name_of_unchanged], original[name_of_unchanged]
        )
    pruned = tiny_model()
    pruned.model.layers[0].mlp.up_proj.weight.data[0] = 0.0  # no step is 0 / 0
    assert not round_weights(pruned, kind).model.layers[0].mlp.up_proj.weight[0].any()


def test_merge_adapter_and_quantization_are_applied_in_this_order(tmp_path, folder, record):
    changes = {"adapter": adapter(folder), "quantization": "int8"}
    checkpoint = run_merge(tmp_path, {"a": 1}, [record("a")], **changes)
    assert checkpoint.content()["changes"].keys() == {"merge", "adapter", "quantization"}
    weights = weights_of(checkpoint)
    unrounded = weights_of(
        replace(checkpoint, changes={**checkpoint.changes, "quantization": None})
    )
    name = "model.layers.0.self_attn.q_proj.weight"
    expected = rounded_slowly(unrounded[name], 8, 32)
    assert (abs(weights[name] - expected) > 1e-6).mean() < 0.01


def test_a_merge_of_unequal_shapes_is_refused(tmp_path, record):
    message = (
        r"models.m.merge cannot be averaged: model.embed_tokens.weight is \(300, 32\) in a "
    )
    with pytest.raises(DamagedFileError, match=message + r"and \(300, 16\) in n"):
        run_merge(tmp_path, {"a": 0.5, "n": 0.5}, [record("a"), record("narrow")])


def test_an_adapter_of_another_base_and_incomplete_groups_are_refused(tmp_path, folder):
    message = r"is for another base .*changes 64 inputs of .*down_proj, .*has 32"
    with pytest.raises(DamagedFileError, match=message):
        fetch(folder, tmp_path, "narrow", adapter=adapter(folder))
    message = r"takes groups of 32 inputs, but .* has 16; set it"
    with pytest.raises(DamagedFileError, match=message):
        fetch(folder, tmp_path, "narrow", quantization="int4")

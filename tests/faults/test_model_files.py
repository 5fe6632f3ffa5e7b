"""Models, adapters and their files that are not whole are refused by name."""

import json
import re
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from records import write_record
from safetensors.torch import load_file, save_file
from tiny_models import save_tiny, tiny_entailment_model, tiny_model

from persistcal.answers.entailment import EntailmentModel
from persistcal.models import checkpoint
from persistcal.models import checkpoint as checkpoints
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import load_adapter, load_model, open_model, open_tokenizer
from persistcal.store import files
from persistcal.store.files import DamagedFileError
from persistcal.training.train import adapter_files, initialise, share_adapter

torch.set_num_threads(1)
NORM = "model.norm.weight"
DOWN = "model.layers.0.mlp.down_proj.weight"


@pytest.fixture
def folder(tmp_path):
    """A saved model with its tokenizer, and its record next to the folder."""
    save_tiny(tmp_path / "model")
    write_record(tmp_path / "model", tmp_path / "model.json")
    return tmp_path / "model"


def change(folder, edit, name="model.safetensors"):
    """Save the tensors in `folder` again after `edit` has changed them."""
    tensors = load_file(folder / name)
    edit(tensors)
    save_file(tensors, folder / name, {"format": "pt"})


def change_config(folder, name="config.json", **settings):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def flip_bit(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def not_a_number(tensors):
    tensors[DOWN][0, 0] = float("nan")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop(DOWN), f"lacks weights of the model: {DOWN};"),
        (lambda t: t.update(other=t.pop(NORM)), f"lacks .*: {NORM}, and has .*: other;"),
        (lambda t: t.update(extra=torch.ones(2)), "has weights that the model .*: extra;"),
        (lambda t: t.update({NORM: torch.ones(9)}), f"of another shape than .*: {NORM};"),
        (not_a_number, f"not finite numbers: {DOWN}; fetch or save it again"),
        (lambda t: t[NORM].fill_(float("-inf")), f"not finite numbers: {NORM};"),
        (lambda t: lose_half(t), r"lacks .*: model\.layers\.1\..*, .* and 8 more;"),
    ],
)
def test_weights_that_are_missing_unknown_or_not_finite_are_refused(folder, edit, message):
    change(folder, edit)
    with pytest.raises(DamagedFileError, match=rf"model\.safetensors .*{message}"):
        load_model(str(folder), device="cpu")


def lose_half(tensors):
    for name in [name for name in tensors if "layers.1" in name]:
        del tensors[name]


def test_tied_embeddings_are_not_missing(tmp_path):
    model = tiny_model("llama")  # the head is the embedding, which is saved once
    model.save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    loaded = load_model(str(tmp_path), device="cpu")
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)
    change(tmp_path, lambda t: t.pop("model.embed_tokens.weight"))
    with pytest.raises(DamagedFileError, match="lacks weights of the model: "):
        load_model(str(tmp_path), device="cpu")


def test_buffers_of_former_versions_are_accepted(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path)
    former = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    change(tmp_path, lambda t: t.update(former))
    assert load_model(str(tmp_path), device="cpu").num_parameters()


def cut_off(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def put_an_adapter_beside(folder):
    """Transformers would load the model that the adapter's config names, from anywhere."""
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "other/model"}')


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (cut_off, r"model/model\.safetensors is cut off or damaged .*save"),
        (lambda f: (f / "config.json").unlink(), r"model/config\.json is missing; put it back"),
        (put_an_adapter_beside, r"holds adapter_config\.json, so another model"),
        # Sizes that must take no memory
        (lambda f: change_config(f, num_hidden_layers=200_000), "hidden_layers is 200000"),
        (lambda f: change_config(f, vocab_size=10**10), "describes a model of 640,000,0"),
        (lambda f: change_config(f, hidden_size=2**22), r"\.json describes .* have 37,888;"),
    ],
)
def test_a_folder_without_a_valid_model_is_refused(folder, edit, message):
    edit(folder)
    with pytest.raises(DamagedFileError, match=message):
        load_model(str(folder), device="cpu")


def test_files_that_changed_since_their_record_are_refused(folder):
    checkpoint = Checkpoint.read(folder.with_suffix(".json"))
    open_tokenizer(checkpoint)
    open_model(checkpoint)
    flip_bit(folder / "model.safetensors", -5)  # the weight stays finite
    remedy = rf"put it back or delete {folder.with_suffix('.json')} to make the results again"
    with pytest.raises(DamagedFileError, match=rf"model\.safetensors is not the .* {remedy}"):
        open_model(checkpoint)
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(DamagedFileError, match=r"tokenizer_config\.json is missing; put it"):
        open_tokenizer(checkpoint)


def test_the_remedy_for_a_file_that_the_workflow_made_is_to_delete_it(folder):
    path = folder.with_suffix(".json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "revision": None}))
    flip_bit(folder / "model.safetensors", -5)
    with pytest.raises(DamagedFileError, match="delete it, so that the workflow makes it"):
        open_model(Checkpoint.read(path))


def test_large_files_are_read_once_per_version(folder, monkeypatch):
    read = []

    def count(path):
        read.append(Path(path).name)
        return "wrong" if len(read) > 10 else digest(path)

    digest = checkpoints.sha256
    for module in (checkpoints, files):
        monkeypatch.setattr(module, "sha256", count)
    checkpoint = Checkpoint.read(folder.with_suffix(".json"))
    n_files = len(checkpoint.files | checkpoint.weights)
    for _ in range(2):
        open_model(checkpoint)
    assert len(read) == 2 * n_files  # small ones every time
    monkeypatch.setattr(checkpoints, "ALWAYS_READ", 1000)
    monkeypatch.setattr(files, "READ_EACH_TIME", 0)
    read.clear()
    for _ in range(2):
        open_model(checkpoint)
    assert len(read) == n_files
    flip_bit(folder / "model.safetensors", -5)
    with pytest.raises(DamagedFileError, match="is not the file"):
        open_model(checkpoint)
    assert read[n_files:] == ["model.safetensors"]


@pytest.mark.parametrize("content", ["", "[]", '{"repo": "a"}', '{"repo'])
def test_a_damaged_record_is_refused(tmp_path, content):
    (tmp_path / "early.json").write_text(content)
    with pytest.raises(DamagedFileError, match=r"early\.json is not the record .* delete it"):
        Checkpoint.read(tmp_path / "early.json")


def test_an_entailment_model_with_missing_or_infinite_weights_is_refused(tmp_path):
    tiny_entailment_model(tmp_path)
    for edit, message in (
        (lambda t: t["classifier.weight"].fill_(float("nan")), "not finite numbers"),
        (lambda t: t.pop("classifier.weight"), "lacks weights of the model"),
    ):
        change(tmp_path, edit)
        with pytest.raises(DamagedFileError, match=rf"{message}: classifier\.weight"):
            EntailmentModel(str(tmp_path), batch_size=2)


@pytest.fixture
def adapter(tmp_path):
    """An adapter as training writes it, for `tiny_model()`."""
    model = tiny_model()
    factors = share_adapter([model], rank=2, alpha=4)
    initialise(factors, 17)
    with torch.no_grad():
        for factor in factors.values():
            factor.add_(0.01)
    (tmp_path / "adapter").mkdir()
    for name, content in adapter_files(factors, rank=2, alpha=4, base_model="a/b").items():
        (tmp_path / "adapter" / name).write_bytes(content)
    return tmp_path / "adapter"


WEIGHTS = "adapter_model.safetensors"
LORA = "base_model.model.model.layers.0.mlp.down_proj.lora_B"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lose_half, r"lacks weights of the model: .*layers\.1\..* and 11 more"),
        (lambda t: t.update(extra=torch.ones(2)), "has weights that the model .*: extra"),
        (lambda t: t[f"{LORA}.weight"].fill_(float("nan")), f"not finite numbers: {LORA}"),
        (
            lambda t: t.update({f"{LORA}.weight": torch.ones(32, 3)}),
            "does not fit the model .*size mismatch .*; use the adapter that was trained on it",
        ),
    ],
)
def test_an_adapter_with_missing_unknown_or_infinite_weights_is_refused(adapter, edit, message):
    change(adapter, edit, WEIGHTS)  # without a digest, like the file of another program
    with pytest.raises(DamagedFileError, match=rf"{WEIGHTS} .*{message}"):
        load_adapter(tiny_model(), adapter)


def test_an_adapter_of_another_model_is_refused(adapter):
    with pytest.raises(DamagedFileError, match="lacks weights of the model: "):
        load_adapter(tiny_model(layers=4), adapter)
    with pytest.raises(DamagedFileError, match="does not fit the model"):
        load_adapter(tiny_model(hidden=64), adapter)


def test_adapters_side_by_side_are_checked_too(adapter, tmp_path):
    adapted = load_adapter(tiny_model(), adapter, "one")
    change(adapter, lose_half, WEIGHTS)
    with pytest.raises(DamagedFileError, match="lacks weights of the model"):
        load_adapter(adapted, adapter, "two")


def test_a_flipped_bit_in_an_adapter_is_refused_or_has_no_effect(adapter):
    expected = load_file(adapter / WEIGHTS)
    path = adapter / WEIGHTS
    content, n_refused = path.read_bytes(), 0
    places = range(0, len(content), len(content) // 12)
    for place in places:
        flip_bit(path, place)
        try:
            adapted = load_adapter(tiny_model(), adapter)
        except DamagedFileError:
            n_refused += 1
        else:
            state = adapted.state_dict()
            for name, tensor in expected.items():
                assert torch.equal(state[name.replace(".weight", ".default.weight")], tensor)
        path.write_bytes(content)
    assert n_refused > 0.9 * len(places)


def test_a_changed_adapter_config_is_refused(adapter):
    load_adapter(tiny_model(), adapter)
    change_config(adapter, "adapter_config.json", lora_alpha=6)
    with pytest.raises(DamagedFileError, match=f"{WEIGHTS} or the file next to it is damaged"):
        load_adapter(tiny_model(), adapter)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa', and only plain LoRA"),
        ({"peft_type": "XLORA"}, "peft_type is 'XLORA'"),
        ({"r": 10**9}, "r is 1000000000"),
        ({"rank_pattern": ["q_proj"]}, r"rank_pattern is \['q_proj'\]"),
        ({"lora_alpha": "x"}, r"adapter_config\.json: peft cannot read it \(unsupported"),
        ({"target_modules": "["}, r"adapter_config\.json: peft cannot read it \(unterm"),
        ({"trainable_token_indices": [1]}, r"adapter_config\.json: peft cannot read it"),
        ({"megatron_config": {"a": 1}, "megatron_core": "os"}, "megatron_config is"),
    ],
)
def test_only_plain_adapters_are_loaded(tmp_path, settings, message):
    adapted = get_peft_model(tiny_model(), LoraConfig(target_modules="all-linear"))
    adapted.save_pretrained(tmp_path)
    load_adapter(tiny_model(), tmp_path)
    change_config(tmp_path, "adapter_config.json", **settings)
    with pytest.raises(DamagedFileError, match=message):
        load_adapter(tiny_model(), tmp_path)


def test_an_adapter_without_weights_or_config_is_refused(adapter):
    (adapter / WEIGHTS).rename(adapter / "adapter_model.bin")
    with pytest.raises(DamagedFileError, match=re.escape(f"{adapter / WEIGHTS} is missing")):
        load_adapter(tiny_model(), adapter)
    (adapter / "adapter_config.json").unlink()
    with pytest.raises(DamagedFileError, match=r"adapter_config\.json is missing"):
        load_adapter(tiny_model(), adapter)


def test_finite_weights_of_every_kind_pass():
    tensors = {"a": torch.ones(2).bfloat16(), "b": torch.arange(3), "c": torch.ones(0)}
    checkpoint.check_finite(tensors.items(), "here")

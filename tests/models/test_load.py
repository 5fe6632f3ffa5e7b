"""Models are loaded from safetensors, without code, on one device or split over several."""

import json

import pytest
import torch
from accelerate import dispatch_model
from tiny_models import tiny_model, tiny_tokenizer
from transformers import LlamaForCausalLM
from transformers.utils import logging as transformers_logging

from persistcal.answers.decode import Search, generate_beams
from persistcal.models.load import load_model, load_tokenizer, pick_device, split_model
from persistcal.training import train
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import accumulate_gradients, initialise


@pytest.fixture
def folder(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_models_are_loaded_for_inference_in_float32_or_the_configured_dtype(folder, dtype):
    model = load_model(str(folder), dtype=dtype, device="cpu")
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    expected = getattr(torch, dtype or "float32")
    assert {parameter.dtype for parameter in model.parameters()} == {expected}


@pytest.mark.parametrize("dtype", ["float33", "Tensor"])
def test_an_unknown_dtype_is_refused(folder, dtype):
    with pytest.raises(ValueError, match=f"dtype '{dtype}' is not one of torch"):
        load_model(str(folder), dtype=dtype)


def test_weights_that_are_not_safetensors_are_refused(folder):
    weights = folder / "model.safetensors"
    torch.save({}, folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(OSError, match="safetensors"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("load", [load_model, load_tokenizer])
def test_code_that_comes_with_weights_is_neither_run_nor_offered(folder, load, monkeypatch):
    questions_to_user = []
    monkeypatch.setattr("builtins.input", questions_to_user.append)
    (folder / "mine.py").write_text("raise SystemExit('it was run')")
    auto_map = {"AutoConfig": "mine.A", "AutoModelForCausalLM": "mine.B"}
    config = {"model_type": "mine", "auto_map": auto_map}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = {"tokenizer_class": "C", "auto_map": {"AutoTokenizer": ["mine.C", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match="trust_remote_code"):
        load(str(folder))
    assert not questions_to_user


def test_loading_shows_no_progress_bar_and_does_not_disable_other_bars(folder, capsys):
    LlamaForCausalLM.from_pretrained(folder)
    assert "Loading weights" in capsys.readouterr().err
    load_model(str(folder), device="cpu")
    assert not capsys.readouterr().err
    assert transformers_logging.is_progress_bar_enabled()


def test_the_device_is_chosen_and_logged_once(caplog):
    pick_device.cache_clear()
    caplog.set_level("INFO")
    device = pick_device()
    assert pick_device() == device
    assert caplog.messages == [f"Models run on {device}"]
    assert device.type != "cpu" or not torch.cuda.is_available()


def test_a_model_that_hardly_fits_is_split_over_all_gpus():
    model = tiny_model("olmo3", layers=4)
    size = sum(parameter.nbytes for parameter in model.parameters())
    assert split_model(model, [2 * size, 2 * size]) is None
    assert split_model(model, [size // 2]) is None  # only one device
    devices = split_model(model, [2 * size, 2 * size - 1])
    assert devices == {
        **{"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 0},
        **{"model.layers.2": 1, "model.layers.3": 1, "model.norm": 1, "model.rotary_emb": 0},
        "lm_head": 1,
    }
    tied = split_model(tiny_model("llama"), [1, 1])
    assert tied["lm_head"] == tied["model.embed_tokens"] == 0


def test_a_model_split_over_devices_gives_the_same_results():
    """The CPU is every device; hooks move the tensors between devices."""
    tokenizer, search, results = tiny_tokenizer(), Search(max_new_tokens=4), []
    question = TrainingQuestion(("Is it? yes 7", "Is it? no"), (0.6, 0.4), (1.0, 0.0))
    for split in (False, True):
        model = tiny_model(layers=4).cpu()
        if split:
            devices = dict.fromkeys(split_model(model, [1, 1]), "cpu")
            model = dispatch_model(model, devices, force_hooks=True)
            assert hasattr(model.model.layers[3], "_hf_hook")
        beams = generate_beams(model, tokenizer, "Is it? ", ["yes", "no 1"], search)
        trainee = train.prepare({"a": model}, tokenizer, [{"q": question}], rank=2, alpha=4)
        initialise(trainee.adapter, 17)
        losses = accumulate_gradients(trainee, {"a": [question]}, divisor=1, micro_batch=2)
        gradients = {name: p.grad for name, p in trainee.adapter.items()}
        assert any(gradient.any() for gradient in gradients.values())
        results.append((beams, losses, gradients))
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[0][1:], results[1][1:], rtol=0, atol=0)

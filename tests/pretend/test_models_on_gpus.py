"""Models move to GPUs, leave them, get a dtype that they support, and decode as on a CPU."""

import logging
from types import SimpleNamespace

import pretended_cuda
import pytest
import torch
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.answers.decode import Draw, Search, generate_beams
from persistcal.models.load import load_model

SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]


@pytest.fixture
def saved(tmp_path):
    tiny_model(layers=4).save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.fixture
def small_gpus(monkeypatch):
    """GPUs so small that a tiny model is split over them."""
    properties = SimpleNamespace(total_memory=60_000, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: properties)


def in_use():
    return [torch.cuda.memory_allocated(gpu) for gpu in range(2)]


def test_weights_go_to_a_gpu_one_by_one(saved, monkeypatch):
    moved = []
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, *_: moved.append(module))
    model = load_model(saved)
    assert {p.device.type for p in model.parameters()} == {"cuda"}
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert not moved


def test_a_deleted_split_model_frees_its_gpus_for_the_next_model(saved, small_gpus):
    model = load_model(saved)
    assert {str(p.device) for p in model.parameters()} == {"cuda:0", "cuda:1"}
    used_by_one = in_use()
    del model
    reloaded = load_model(saved)
    assert in_use() == used_by_one
    assert reloaded.device.type == "cuda"


@pytest.mark.parametrize(("capability", "dtype"), [((8, 0), "bfloat16"), ((7, 5), "float32")])
def test_gpus_without_bfloat16_get_float32(capability, dtype, saved, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(pretended_cuda.driver, "capability", capability)
    assert load_model(saved).dtype == getattr(torch, dtype)
    assert ("does not compute in bfloat16" in caplog.text) == (dtype == "float32")
    # a dtype in the config is used
    assert load_model(saved, dtype="bfloat16").dtype == torch.bfloat16


@pytest.mark.parametrize("draw", [None, Draw(0.8, 0.9, 1)])
@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_a_split_model_decodes_as_a_whole_one(kind, draw, tmp_path, small_gpus):
    model = tiny_model(kind, layers=4)
    model.save_pretrained(tmp_path)
    split = load_model(str(tmp_path), dtype="float32")
    assert {str(p.device) for p in split.parameters()} == {"cuda:0", "cuda:1"}
    search = Search(3, 12, draw, batch_size=2)  # two questions begin when others are done
    beams, expected = (
        generate_beams(m, tiny_tokenizer(), "", SUFFIXES, search) for m in (split, model)
    )
    assert [[b.text for b in beams_of_question] for beams_of_question in beams] == [
        [b.text for b in beams_of_question] for beams_of_question in expected
    ]

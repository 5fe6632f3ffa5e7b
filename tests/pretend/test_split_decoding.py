"""A model whose layers lie on two GPUs decodes what it decodes on a CPU."""

from types import SimpleNamespace

import pytest
import torch
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.answers.decode import Draw, Search, generate_beams
from persistcal.models.load import load_model

SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]


@pytest.mark.parametrize("draw", [None, Draw(0.8, 0.9, 1)])
@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_a_split_model_decodes_as_a_whole_one(kind, draw, tmp_path, monkeypatch):
    model = tiny_model(kind, layers=4)
    model.save_pretrained(tmp_path)
    small = SimpleNamespace(total_memory=60_000, name="", major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=None: small)
    split = load_model(str(tmp_path), dtype="float32")
    assert {str(p.device) for p in split.parameters()} == {"cuda:0", "cuda:1"}
    found = [
        generate_beams(one, tiny_tokenizer(), "", SUFFIXES, Search(3, 12, draw))
        for one in (split, model)
    ]
    for ours, theirs in zip(*found, strict=True):
        assert [beam.text for beam in ours] == [beam.text for beam in theirs]

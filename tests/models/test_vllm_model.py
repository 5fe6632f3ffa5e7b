"""Beam search on vLLM's log-probabilities, with a stand-in for vLLM.

The same with vLLM itself: `test_vllm.py`.
"""

import sys

import fake_vllm
import numpy as np
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import beams_job
from like_generate import assert_same_beams
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.answers.decode import Search, generate_beams
from persistcal.models.load import load_model
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.models.vllm import VllmModel
from persistcal.store import artifacts

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

PREFIX = few_shot_prefix([("Which country is Oslo in?", "Norway"), ("And Lima?", "Peru")])
SUFFIXES = [question_suffix(f"Which country is {name} in?") for name in ("Oslo", "it", "Ö", "")]


@pytest.fixture
def made(monkeypatch):
    """Models that the stand-in was asked for."""
    return fake_vllm.install(monkeypatch)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_model(layers=2).save_pretrained(folder)
    return str(folder)


def decode(model, suffixes=SUFFIXES, **sizes):
    return generate_beams(model, tiny_tokenizer(), PREFIX, suffixes, Search(**sizes))


def test_all_beams_of_a_batch_go_to_vllm_together(made, checkpoint):
    decode(VllmModel(checkpoint), SUFFIXES[:3], n_beams=5, max_new_tokens=9, batch_size=3)
    assert made[0].steps[0] == 3
    assert max(made[0].steps) == 15
    assert len(made[0].steps) <= 9


def test_a_vocabulary_smaller_than_the_candidates(made, checkpoint):
    """Of 160 beams there are 320 candidates a step, but the vocabulary has 300 tokens."""
    sizes = {"n_beams": 160, "max_new_tokens": 2}
    [ours], [expected] = (
        decode(model, SUFFIXES[:1], **sizes)
        for model in (VllmModel(checkpoint), load_model(checkpoint))
    )
    assert len(ours) == 160
    logprobs = [[beam.logprob for beam in beams] for beams in (ours, expected)]
    np.testing.assert_allclose(*logprobs, atol=1e-4)


@pytest.mark.parametrize(
    ("eos", "file", "batch_size"), [(0, False, 3), ([0, 70, 75, 80], True, 4)]
)
def test_beams_are_those_of_transformers(made, tmp_path, eos, file, batch_size):
    """Four tokens that end a beam widen the candidates; the file of them is optional."""
    model = tiny_model(layers=2)
    model.generation_config.eos_token_id = model.config.eos_token_id = eos
    model.save_pretrained(tmp_path)
    if not file:
        (tmp_path / "generation_config.json").unlink()
    reference = load_model(str(tmp_path))
    assert reference.generation_config.eos_token_id == eos
    sizes = {"n_beams": 5, "max_new_tokens": 9, "batch_size": batch_size}
    ours = decode(VllmModel(str(tmp_path)), **sizes)
    assert_same_beams(ours, decode(reference, **sizes))
    assert len({len(beam.text) for beams in ours for beam in beams}) > 3


def test_what_is_asked_of_vllm(made, checkpoint):
    VllmModel(checkpoint)
    VllmModel(checkpoint, dtype="bfloat16")
    by_default, given = (model.settings for model in made)
    expected = {
        "load_format": "safetensors",
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "logprobs_mode": "raw_logprobs",
        "tensor_parallel_size": 1,
        "dtype": "float32",
    }
    assert by_default.items() >= expected.items()
    assert given["dtype"] == "bfloat16"


def test_without_vllm_the_error_names_the_remedy(monkeypatch, checkpoint):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ImportError, match=r"needs vLLM.*docs/cluster\.md.*decoding\.backend"):
        VllmModel(checkpoint)


def test_the_script_takes_the_backend(made, tmp_path):
    write_checkpoints(tmp_path, ["a"])
    tables = {}
    for backend in ("transformers", "vllm"):
        beams_job(tmp_path, tmp_path / "beams.parquet", backend=backend)
        tables[backend] = artifacts.read(tmp_path / "beams.parquet", artifacts.BEAMS)
        assert len(made) == (backend == "vllm")
    expected, ours = tables.values()
    same = ["question_id", "beam", "text", "n_tokens"]
    assert ours[same].equals(expected[same])
    unknown = ["entropy", "self_certainty"]
    assert ours[unknown].isna().all(axis=None) and expected[unknown].notna().all(axis=None)
    known = ["logprob", "margin", "min_logprob"]
    np.testing.assert_allclose(ours[known], expected[known], atol=1e-4)

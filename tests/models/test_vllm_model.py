"""Beam search on vLLM's log-probabilities, with a stand-in for vLLM.

The same with vLLM itself: `test_vllm.py`.
"""

import sys
from pathlib import Path

import fake_vllm
import numpy as np
import pytest
import torch
import yaml
from adapter_files import write_checkpoints
from jobs import beams_job
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.answers.decode import Search, generate_beams
from persistcal.confidence.prompts import few_shot_prefix, question_suffix
from persistcal.models.load import load_model
from persistcal.models.vllm import VllmModel
from persistcal.store import artifacts, progress
from study.check import check_config
from study.schema import ConfigError

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


def assert_same_beams(ours, theirs):
    assert len(ours) == len(theirs) == len(SUFFIXES)
    for beams, expected in zip(ours, theirs, strict=True):
        assert [beam.text for beam in beams] == [beam.text for beam in expected]
        logprobs = [[beam.logprob for beam in answer] for answer in (beams, expected)]
        np.testing.assert_allclose(*logprobs, atol=1e-4)


def decode(model, suffixes=SUFFIXES, **sizes):
    return generate_beams(model, tiny_tokenizer(), PREFIX, suffixes, Search(**sizes))


@pytest.mark.parametrize("batch_size", [1, 3, 4])
def test_beams_are_those_of_transformers(made, checkpoint, batch_size):
    sizes = {"n_beams": 5, "max_new_tokens": 9}
    expected = decode(load_model(checkpoint), **sizes)
    ours = decode(VllmModel(checkpoint), batch_size=batch_size, **sizes)
    assert_same_beams(ours, expected)
    assert len({len(beam.text) for beams in ours for beam in beams}) > 3


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


@pytest.mark.parametrize("eos", [0, [0, 70, 75, 80]], ids=["one", "four"])
@pytest.mark.parametrize("file", [True, False], ids=["file", "no file"])
def test_the_same_tokens_end_a_beam(made, tmp_path, eos, file):
    """Four also widen the candidates of a step; the file of them is optional."""
    model = tiny_model(layers=2)
    model.generation_config.eos_token_id = model.config.eos_token_id = eos
    model.save_pretrained(tmp_path)
    if not file:
        (tmp_path / "generation_config.json").unlink()
    reference = load_model(str(tmp_path))
    assert reference.generation_config.eos_token_id == eos
    sizes = {"n_beams": 5, "max_new_tokens": 6}
    assert_same_beams(decode(VllmModel(str(tmp_path)), **sizes), decode(reference, **sizes))


def test_what_is_asked_of_vllm(made, checkpoint):
    VllmModel(checkpoint)
    VllmModel(checkpoint, "main", dtype="bfloat16")
    by_default, given = (model.settings for model in made)
    expected = {
        "load_format": "safetensors",
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "logprobs_mode": "raw_logprobs",
        "tensor_parallel_size": 1,
        "dtype": "float32",
        "revision": None,
        "tokenizer_revision": None,
    }
    assert by_default.items() >= expected.items()
    assert given["dtype"] == "bfloat16"
    assert given["revision"] == given["tokenizer_revision"] == "main"


def test_without_vllm_the_error_names_the_remedy(monkeypatch, checkpoint):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ImportError, match=r"needs vLLM.*docs/cluster\.md.*decoding\.backend"):
        VllmModel(checkpoint)


@pytest.fixture
def study(tmp_path):
    write_checkpoints(tmp_path, ["a"])
    return tmp_path


def beams_of(study, **changes):
    beams_job(study, study / "beams.parquet", **changes)
    return artifacts.read(study / "beams.parquet", artifacts.BEAMS)


def test_the_script_takes_the_backend(made, study):
    expected = beams_of(study)
    assert not made
    ours = beams_of(study, backend="vllm")
    assert len(made) == 1
    same = ["question_id", "beam", "text", "n_tokens"]
    assert ours[same].equals(expected[same])
    assert ours["entropy"].isna().all() and expected["entropy"].notna().all()
    np.testing.assert_allclose(ours["logprob"], expected["logprob"], atol=1e-4)


def test_an_interrupted_run_goes_on(made, study, monkeypatch):
    whole = beams_of(study, backend="vllm")
    n_steps = len(made[0].steps)
    monkeypatch.setattr(progress, "SAVE_EVERY_S", 0)
    answer, asked = fake_vllm.LLM.generate, []

    def generate(self, *arguments, **settings):
        asked.append(None)
        if len(asked) == n_steps // 2:
            raise KeyboardInterrupt
        return answer(self, *arguments, **settings)

    monkeypatch.setattr(fake_vllm.LLM, "generate", generate)
    (study / "beams.parquet").unlink()
    with pytest.raises(KeyboardInterrupt):
        beams_of(study, backend="vllm")
    assert beams_of(study, backend="vllm").equals(whole)
    # Both runs together took no more steps than one, and those of the batch cut off again.
    assert n_steps < len(asked) <= n_steps + 6


def test_the_config_knows_both_backends():
    folder = Path(__file__).parents[2] / "config"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config |= yaml.safe_load((folder / "tables.yaml").read_text())
    assert config["decoding"]["backend"] == "transformers"
    config["decoding"]["backend"] = "vllm"
    check_config(config)
    config["decoding"]["backend"] = "vlm"
    with pytest.raises(ConfigError, match=r"decoding\.backend is 'vlm'.*'vllm'"):
        check_config(config)

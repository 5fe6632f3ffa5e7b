"""Beam search on vLLM's log-probabilities, with a stand-in for vLLM.

`test_vllm.py` has the same tests with vLLM itself.
"""

import sys
from dataclasses import replace

import fake_vllm
import numpy as np
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import beams_job
from like_generate import assert_same_beams
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.answers.continuations import question_key
from persistcal.answers.decode import Draw, Search, generate_beams, newline_tokens
from persistcal.models.load import load_model
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.models.vllm import VllmModel
from persistcal.store import artifacts

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

PREFIX = few_shot_prefix([("Which country is Oslo in?", "Norway"), ("And Lima?", "Peru")])
SUFFIXES = [question_suffix(f"Which country is {name} in?") for name in ("Oslo", "it", "Ö", "")]


@pytest.fixture
def fake_models(monkeypatch):
    """Install the stand-in and return the models that it creates."""
    return fake_vllm.install(monkeypatch)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_model(layers=2).save_pretrained(folder)
    return str(folder)


def decode(model, suffixes=SUFFIXES, **sizes):
    return generate_beams(model, tiny_tokenizer(), PREFIX, suffixes, Search(**sizes))


def test_all_beams_of_a_batch_go_to_vllm_together(fake_models, checkpoint):
    decode(VllmModel(checkpoint), SUFFIXES[:3], n_beams=5, max_new_tokens=9, batch_size=3)
    assert fake_models[0].steps[0] == 3
    assert max(fake_models[0].steps) == 15
    assert len(fake_models[0].steps) <= 9


def test_a_vocabulary_can_be_smaller_than_the_number_of_candidates(fake_models, checkpoint):
    """160 beams need 320 candidates per step, but the vocabulary has 300 tokens."""
    sizes = {"n_beams": 160, "max_new_tokens": 2}
    [beams], [expected] = (
        decode(model, SUFFIXES[:1], **sizes)
        for model in (VllmModel(checkpoint), load_model(checkpoint))
    )
    assert len(beams) == 160
    logprobs = [[beam.logprob for beam in beams] for beams in (beams, expected)]
    np.testing.assert_allclose(*logprobs, atol=1e-4)


@pytest.mark.parametrize(
    ("eos", "has_file", "batch_size"), [(0, False, 3), ([0, 70, 75, 80], True, 4)]
)
def test_beams_equal_those_of_transformers(fake_models, tmp_path, eos, has_file, batch_size):
    """Four end tokens need more candidates; the file that lists them is optional."""
    model = tiny_model(layers=2)
    model.generation_config.eos_token_id = model.config.eos_token_id = eos
    model.save_pretrained(tmp_path)
    if not has_file:
        (tmp_path / "generation_config.json").unlink()
    reference = load_model(str(tmp_path))
    assert reference.generation_config.eos_token_id == eos
    sizes = {"n_beams": 5, "max_new_tokens": 9, "batch_size": batch_size}
    beams = decode(VllmModel(str(tmp_path)), **sizes)
    assert_same_beams(beams, decode(reference, **sizes))
    assert len({len(beam.text) for beams in beams for beam in beams}) > 3


def test_samples_of_a_question_have_the_models_own_log_probabilities(fake_models, checkpoint):
    """A question's samples depend on its text and the seed, not on the batch."""
    draw = Draw(temperature=0.8, top_p=0.95, seed=3)
    sizes = {"n_beams": 6, "max_new_tokens": 5, "draw": draw}
    model, reference = VllmModel(checkpoint), load_model(checkpoint)
    together, alone = (decode(model, **sizes, batch_size=size) for size in (4, 1))
    assert together == alone and fake_models[0].steps == [4, 1, 1, 1, 1]
    other = decode(model, **(sizes | {"draw": replace(draw, seed=4)}), batch_size=4)
    assert [a == b for a, b in zip(together, other, strict=True)] == [False] * 4
    tokenizer, ended = tiny_tokenizer(), 0
    for suffix, samples in zip(SUFFIXES, together, strict=True):
        prompt = tokenizer(PREFIX + suffix)["input_ids"]
        [drawn] = model.draw(
            [prompt],
            [question_key(3, suffix)[0]],
            newline_tokens(tokenizer, 300),
            n=6,
            max_tokens=5,
            temperature=0.8,
            top_p=0.95,
        )
        assert len(samples) == 6
        for sample, (tokens, *_) in zip(samples, drawn, strict=True):
            logits = reference(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
            logprobs = logits.log_softmax(1)
            own = logprobs[range(len(tokens)), tokens]
            best = logprobs.exp().topk(2).values
            assert sample.text == tokenizer.decode(tokens).split("\n")[0]
            assert sample.n_tokens == len(tokens)
            assert sample.logprob == pytest.approx(own.sum().item(), abs=1e-4)
            assert sample.min_logprob == pytest.approx(own.min().item(), abs=1e-4)
            assert sample.margin == pytest.approx(
                (best[:, 0] - best[:, 1]).mean().item(), abs=1e-4
            )
            assert sample.entropy is None and sample.self_certainty is None
            ended += len(tokens) < 5
    assert 0 < ended


def test_vllm_is_started_with_safe_and_exact_settings(fake_models, checkpoint):
    VllmModel(checkpoint)
    VllmModel(checkpoint, dtype="bfloat16")
    by_default, in_bfloat16 = (model.settings for model in fake_models)
    expected = {
        "load_format": "safetensors",
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "logprobs_mode": "raw_logprobs",
        "tensor_parallel_size": 1,
        "dtype": "float32",
    }
    assert by_default.items() >= expected.items()
    assert in_bfloat16["dtype"] == "bfloat16"


def test_a_missing_vllm_is_refused_with_a_remedy(monkeypatch, checkpoint):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ImportError, match=r"needs vLLM.*docs/cluster\.md.*decoding\.backend"):
        VllmModel(checkpoint)


def test_the_rule_decodes_with_the_configured_backend(fake_models, tmp_path):
    write_checkpoints(tmp_path, ["a"])
    tables = {}
    for backend in ("transformers", "vllm"):
        beams_job(tmp_path, tmp_path / "beams.parquet", backend=backend)
        tables[backend] = artifacts.read(tmp_path / "beams.parquet", artifacts.BEAMS)
        assert len(fake_models) == (backend == "vllm")
    expected, beams = tables.values()
    equal_columns = ["question_id", "beam", "text", "n_tokens"]
    assert beams[equal_columns].equals(expected[equal_columns])
    missing_columns = ["entropy", "self_certainty"]
    assert beams[missing_columns].isna().all(axis=None) and expected[
        missing_columns
    ].notna().all(axis=None)
    close_columns = ["logprob", "margin", "min_logprob"]
    np.testing.assert_allclose(beams[close_columns], expected[close_columns], atol=1e-4)

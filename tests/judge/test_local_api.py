"""Answers of SmolLM2 behind the server of vLLM or llama.cpp, and in transformers.

Run by ``make test-api`` and ``make test-llama``, following docs/judge.md.
"""

import os

import pytest
from answer_server import SECTION
from local_server import LLAMA, VLLM, smollm2_served
from served_study import METRICS, compare_with_file, served_study, write
from workflow_runs import snakemake

from persistcal.answers.served import (
    ApiSettings,
    SampleDraws,
    Served,
    samples_of_questions,
)
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.server.spending import ServerError

pytestmark = pytest.mark.skipif(
    not (VLLM or LLAMA), reason="needs a server and SmolLM2: make test-api downloads them"
)
EXAMPLES = few_shot_prefix(
    [("What is the capital of France?", "Paris"), ("Who wrote Emma?", "Austen")]
)
QUESTIONS = {
    "What is the capital of Peru?": "Lima",
    "Which planet is the largest?": "Jupiter",
    "Who painted Guernica?": "Picasso",
    "What is the chemical symbol of gold?": "Au",
    "In which country is Cairo?": "Egypt",
    "What is 2 + 3?": "5",
}
SUFFIXES = [question_suffix(question) for question in QUESTIONS]
# By default llama.cpp samples from few tokens and penalises repetitions.
REQUEST = {"top_k": 0, "min_p": 0, "repeat_penalty": 1} if LLAMA else {}
CHAT = {"max_tokens": 8, "top_logprobs": 1} if LLAMA else {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("smollm2")


@pytest.fixture(scope="module")
def address(folder):
    with smollm2_served(folder, "--dtype", "float32") as address:
        yield address


@pytest.fixture(scope="module")
def local(address, folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def sample(address, folder, draws, prompts=None, request=(), **changes):
    settings = {"request": {**REQUEST, **dict(request)}, "logprobs": True, **changes}
    served = Served(address, "smollm2", **settings)
    prompts = prompts or [{"prompt": EXAMPLES + suffix} for suffix in SUFFIXES]
    api = ApiSettings(
        section=SECTION, concurrency=4, timeout_s=300, retries=0, max_requests=1000
    )
    os.environ["OPENAI_API_KEY"] = "none"
    paths = {"folder": str(folder), "replies": f"{folder}/replies"}
    samples = samples_of_questions(dict(enumerate(prompts)), served, draws, api, **paths)
    return list(samples.values())


def rescored(local, suffix, sample):
    """Return the sums that the weights give an answer's tokens, for each possible end.

    An answer ends by a line break, by two as one token, or by the end of the sequence, which
    llama.cpp does not list. The result is empty if the answer was sampled in other tokens.
    """
    import torch

    model, tokenizer = local
    begin = len(tokenizer(EXAMPLES + suffix).input_ids)
    ids = tokenizer(f"{EXAMPLES}{suffix}{sample.text}\n", return_tensors="pt").input_ids
    with torch.inference_mode():
        logprobs = model(ids).logits[0].log_softmax(-1)
    positions = range(begin, ids.shape[1])
    answer = sum(logprobs[i - 1, ids[0, i]].item() for i in positions[:-1])
    ends = [ids[0, -1], tokenizer.eos_token_id, *tokenizer("\n\n").input_ids[:1]]
    with_end = [answer + logprobs[-2, end].item() for end in ends]
    sums = {len(positions): with_end} | ({len(positions) - 1: [answer]} if LLAMA else {})
    return sums.get(sample.n_tokens, [])


def test_greedy_answers_equal_those_of_the_weights_in_transformers(address, local, tmp_path):
    from persistcal.answers.decode import Search, generate_beams

    local_beams = generate_beams(
        *local, EXAMPLES, SUFFIXES, Search(n_beams=1, max_new_tokens=12)
    )
    greedy = SampleDraws(1, 1.0, 1.0, 17, 12)
    served = sample(address, tmp_path, greedy, request={"temperature": 0})
    assert [s.text for [s] in served] == [beam.text for [beam] in local_beams]
    for suffix, [s], [beam] in zip(SUFFIXES, served, local_beams, strict=True):
        expected = beam.logprob
        if LLAMA and s.n_tokens < beam.n_tokens:
            [expected] = rescored(local, suffix, s)
        else:
            assert s.n_tokens == beam.n_tokens
        assert s.logprob == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("at_once", [1, 4])
def test_log_probabilities_of_samples_are_at_temperature_1(address, local, tmp_path, at_once):
    draws = SampleDraws(4, 0.7, 0.95, 17, 12)
    if LLAMA and at_once > 1:
        with pytest.raises(ServerError, match=r"gave 1 of 4 samples .* set it to 1"):
            sample(address, tmp_path, draws, samples_per_request=at_once)
        return
    samples = sample(address, tmp_path, draws, samples_per_request=at_once)
    assert any(len({s.text for s in answers}) > 1 for answers in samples)
    checked = 0
    for suffix, answers in zip(SUFFIXES, samples, strict=True):
        for s in answers:
            if s.finish == "stop" and (sums := rescored(local, suffix, s)):
                assert min(abs(s.logprob - total) for total in sums) < 1e-3, (s, sums)
                checked += 1
    assert checked >= 12


def test_chats_are_answered_and_too_long_prompts_are_refused(address, tmp_path):
    chat = [{"messages": [{"role": "user", "content": "Say a word."}]}]
    [[first, second]] = sample(address, tmp_path, SampleDraws(2, 1.0, 1.0, 17, 8), chat, CHAT)
    assert first.logprob < 0 < first.n_tokens and second.logprob < 0
    long = [{"prompt": "word " * 3000}]
    with pytest.raises(ServerError, match=r"do not fit into the server's context"):
        sample(address, tmp_path, SampleDraws(1, 1.0, 1.0, 17, 8), long)


def test_a_study_of_a_server_equals_a_study_of_the_same_answers_in_a_file(
    address, tmp_path, monkeypatch
):
    monkeypatch.setenv("SERVER_KEY", "none")
    settings = {"base_url": address, "model": "smollm2", "api_key_env": "SERVER_KEY"}
    apis = {
        name: {**settings, "logprobs": True, "request": {**REQUEST, "temperature": temperature}}
        for name, temperature in (("cold", 0.5), ("warm", 1.0))
    }
    configs = write(tmp_path, "a.yaml", served_study(tmp_path, apis, QUESTIONS, timeout_s=300))
    snakemake(tmp_path, *METRICS, configs=configs)
    beams = compare_with_file(tmp_path, apis)
    assert len(beams) == 2 * len(QUESTIONS) * 4 and beams["logprob"].nunique() > len(QUESTIONS)

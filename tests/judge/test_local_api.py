"""Answers of SmolLM2 behind the server of vLLM or llama.cpp, and of the same weights here.

Run by ``make test-api`` and ``make test-llama``, as docs/judge.md says to do it.
"""

import pytest
from answer_server import SECTION
from local_server import LLAMA, VLLM, smollm2_served
from served_study import METRICS, compare_with_file, served_study, write
from workflow_runs import snakemake

from persistcal.answers.served import (
    Reach,
    SampleDraws,
    Served,
    ask_for_samples,
    sample_requests,
)
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.server.spending import ServerError

pytestmark = pytest.mark.skipif(
    not (VLLM or LLAMA), reason="needs a server and SmolLM2: make test-api downloads them"
)
SHOWN = few_shot_prefix(
    [("What is the capital of France?", "Paris"), ("Who wrote Emma?", "Austen")]
)
ASKED = {
    "What is the capital of Peru?": "Lima",
    "Which planet is the largest?": "Jupiter",
    "Who painted Guernica?": "Picasso",
    "What is the chemical symbol of gold?": "Au",
    "In which country is Cairo?": "Egypt",
    "What is 2 + 3?": "5",
}
SUFFIXES = [question_suffix(question) for question in ASKED]
# llama.cpp, of its own accord, draws from few tokens, and seldom one that was there before.
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


def sample(address, folder, draws, said=None, request=(), **changes):
    how = {"request": {**REQUEST, **dict(request)}, "logprobs": True, **changes}
    served = Served(address, "smollm2", **how)
    said = said or [{"prompt": SHOWN + suffix} for suffix in SUFFIXES]
    reach = Reach(SECTION, concurrency=4, timeout_s=300, retries=0, max_requests=1000)
    of_each = [sample_requests(one, served, draws) for one in said]
    found = ask_for_samples(
        {key: body for requests in of_each for key, body in requests.items()},
        served,
        reach,
        folder=str(folder),
        replies=f"{folder}/replies",
        api_key="none",
    )
    return [[s for key in requests for s in found[key]] for requests in of_each]


def rescored(local, suffix, sample):
    """The sums that the weights give the tokens of an answer, one for each way to end.

    It ends by a line break, by two as one token, or by the end of the sequence, which llama.cpp
    does not list. There are none where the answer was drawn in other tokens than it is read.
    """
    import torch

    model, tokenizer = local
    begin = len(tokenizer(SHOWN + suffix).input_ids)
    ids = tokenizer(f"{SHOWN}{suffix}{sample.text}\n", return_tensors="pt").input_ids
    with torch.inference_mode():
        logprobs = model(ids).logits[0].log_softmax(-1)
    places = range(begin, ids.shape[1])
    said = sum(logprobs[i - 1, ids[0, i]].item() for i in places[:-1])
    ends = [ids[0, -1], tokenizer.eos_token_id, *tokenizer("\n\n").input_ids[:1]]
    with_end = [said + logprobs[-2, end].item() for end in ends]
    sums = {len(places): with_end} | ({len(places) - 1: [said]} if LLAMA else {})
    return sums.get(sample.n_tokens, [])


def test_greedy_answers_are_those_of_the_same_weights_here(address, local, tmp_path):
    from persistcal.answers.decode import Search, generate_beams

    here = generate_beams(*local, SHOWN, SUFFIXES, Search(n_beams=1, max_new_tokens=12))
    greedy = SampleDraws(1, 1.0, 1.0, 17, 12)
    there = sample(address, tmp_path, greedy, request={"temperature": 0})
    assert [s.text for [s] in there] == [beam.text for [beam] in here]
    for suffix, [s], [beam] in zip(SUFFIXES, there, here, strict=True):
        expected = beam.logprob
        if LLAMA and s.n_tokens < beam.n_tokens:
            [expected] = rescored(local, suffix, s)
        else:
            assert s.n_tokens == beam.n_tokens
        assert s.logprob == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("at_once", [1, 4])
def test_log_probabilities_of_samples_are_those_of_the_weights_at_temperature_1(
    address, local, tmp_path, at_once
):
    draws = SampleDraws(4, 0.7, 0.95, 17, 12)
    if LLAMA and at_once > 1:
        with pytest.raises(ServerError, match=r"gave 1 of 4 samples .* set it to 1"):
            sample(address, tmp_path, draws, samples_per_request=at_once)
        return
    found = sample(address, tmp_path, draws, samples_per_request=at_once)
    assert any(len({s.text for s in of_one}) > 1 for of_one in found)
    checked = 0
    for suffix, of_one in zip(SUFFIXES, found, strict=True):
        for s in of_one:
            if s.finish == "stop" and (sums := rescored(local, suffix, s)):
                assert min(abs(s.logprob - total) for total in sums) < 1e-3, (s, sums)
                checked += 1
    assert checked >= 12


def test_a_chat_answers_and_a_context_that_is_too_short_is_said(address, tmp_path):
    chat = [{"messages": [{"role": "user", "content": "Say a word."}]}]
    [[one, other]] = sample(address, tmp_path, SampleDraws(2, 1.0, 1.0, 17, 8), chat, CHAT)
    assert one.logprob < 0 < one.n_tokens and other.logprob < 0
    long = [{"prompt": "word " * 3000}]
    with pytest.raises(ServerError, match=r"do not fit into the server's context"):
        sample(address, tmp_path, SampleDraws(1, 1.0, 1.0, 17, 8), long)


def test_a_study_of_its_answers_is_that_of_the_same_answers_in_a_file(
    address, tmp_path, monkeypatch
):
    monkeypatch.setenv("SERVER_KEY", "none")
    how = {"base_url": address, "model": "smollm2", "api_key_env": "SERVER_KEY"}
    apis = {
        name: {**how, "logprobs": True, "request": {**REQUEST, "temperature": temperature}}
        for name, temperature in (("cold", 0.5), ("warm", 1.0))
    }
    configs = write(tmp_path, "a.yaml", served_study(tmp_path, apis, ASKED, timeout_s=300))
    snakemake(tmp_path, *METRICS, configs=configs)
    beams = compare_with_file(tmp_path, apis)
    assert len(beams) == 2 * len(ASKED) * 4 and beams["logprob"].nunique() > len(ASKED)

"""Samples from a model behind HTTP: requests, replies, costs and refusals."""

import json
from dataclasses import replace

import pytest
from answer_server import KEY, SECTION, FakeModel, answer, chosen, prompts
from answer_tables import questions_table
from hypothesis import given
from hypothesis import strategies as st
from judge_server import any_json, as_json, cut, cut_in_the_middle, error
from sample_from_server import sample_from_server
from werkzeug import Response

from persistcal.answers.served import (
    SampleDraws,
    Served,
    ServedSample,
    read_samples,
    sample_requests,
)
from persistcal.models.prompts import FewShot, few_shot_bodies
from persistcal.server.spending import BadReplyError, ServerError
from persistcal.store import artifacts

DRAWS = SampleDraws(3, 0.5, 0.9, 17, 20)
CHAT = [{"messages": [{"role": "user", "content": f"Fact {i}?"}]} for i in range(3)]


@pytest.fixture
def fake(tmp_path):
    with FakeModel(tmp_path) as model:
        yield model


def texts(samples):
    return [[sample.text for sample in samples_of_question] for samples_of_question in samples]


# Requests


def test_each_sample_is_requested_once_with_its_seed_and_kept(fake):
    answers = texts(fake.sample(prompts(4), n=3))
    assert set(fake.asked.values()) == {1} and len(fake.asked) == 12
    seeds = {seed for _, seed in fake.asked}
    assert len(seeds) == 12 and all(0 <= seed < 2**31 for seed in seeds)
    assert answers == [
        [f" {answer(f'Fact {i}?', body['seed'])}" for body in bodies]
        for i in range(4)
        for bodies in [sample_requests(prompts(4)[i], fake.served(), DRAWS).values()]
    ]
    # Another order, fewer questions, more samples and no key give the same samples.
    assert texts(fake.sample(prompts(4)[::-1], n=3, api_key=""))[::-1] == answers

    more = texts(fake.sample(prompts(2), n=5))
    assert [samples_of_question[:3] for samples_of_question in more] == answers[:2]
    assert len(fake.bodies) == fake.booked == fake.kept == 16
    assert fake.bodies[0] == {
        **{"model": "m1", "prompt": fake.bodies[0]["prompt"], "max_tokens": 20},
        **{"temperature": 0.5, "top_p": 0.9, "stop": ["\n"], "seed": fake.bodies[0]["seed"]},
    }


def test_several_samples_of_one_request_keep_their_order(fake):
    # Five samples, two per request: requests of 2, 2 and 1.
    samples = fake.sample(prompts(1), n=5, samples_per_request=2, logprobs=True)
    served = fake.served(samples_per_request=2)
    bodies = sample_requests(prompts(1)[0], served, DRAWS._replace(n_samples=5)).values()
    assert [body.get("n", 1) for body in bodies] == [2, 2, 1]
    # The fake model marks the second sample of a request by a 1 after the seed.
    drawn = [f"{body['seed']}{i or ''}" for body in bodies for i in range(body.get("n", 1))]
    assert texts(samples) == [[f" {answer('Fact 0?', seed)}" for seed in drawn]]
    assert {(s.logprob, s.n_tokens) for s in samples[0]} == {(-1.5, 2)}


def test_a_chat_is_requested_in_turns_and_fields_can_be_added_or_left_out(fake):
    request = {"seed": None, "top_p": None, "max_completion_tokens": 99, "user": "me"}
    samples = fake.sample(CHAT[:1], n=2, logprobs=True, request=request)
    assert fake.bodies[0] == {
        "model": "m1",
        **CHAT[0],
        "max_completion_tokens": 99,
        "temperature": 0.5,
        "stop": ["\n"],
        "logprobs": True,
        "user": "me",
    }
    # Without a seed the two requests are equal, but both samples are kept.
    assert len(fake.bodies) == fake.kept == 2
    assert [(s.logprob, s.n_tokens) for s in samples[0]] == [(-1.5, 2)] * 2


def test_another_model_address_or_setting_changes_the_request():
    served_model = Served("http://a/v1", "m1")
    variants = [
        Served("http://b/v1", "m1"),
        Served("http://a/v1", "m2"),
        Served("http://a/v1", "m1", logprobs=True),
        Served("http://a/v1", "m1", request={"min_p": 0.1}),
    ]
    keys = [
        {*sample_requests(prompts(1)[0], served, DRAWS)} for served in [served_model, *variants]
    ]
    assert len(set.union(*keys)) == 15
    warmer = {*sample_requests(prompts(1)[0], served_model, DRAWS._replace(temperature=1))}
    assert keys[0].isdisjoint(warmer)
    # A model that reasons can write line breaks.
    thinking = sample_requests(prompts(1)[0], replace(served_model, reasoning="drop"), DRAWS)
    assert not any("stop" in body for body in thinking.values())


def questions():
    return questions_table(2, 4).assign(
        split=["train"] * 2 + ["test"] * 3 + ["few_shot"],
        question=[f"Fact {i}?" for i in range(5)] + ["Shown?"],
        excluded=[False] * 3 + [True] + [False] * 2,
    )


def test_the_rule_writes_samples_as_beams(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", f" {KEY}\n")
    paths = {"folder": str(tmp_path), "replies": str(tmp_path / "replies")}
    beams = sample_from_server(
        questions().sample(frac=1, random_state=1),
        split="test",
        few_shot=FewShot(1),
        served=fake.served(),
        draws=DRAWS,
        api=fake.reach(api_key_env="A_KEY"),
        **paths,
    )
    artifacts.check(beams, artifacts.BEAMS, "")
    assert beams["question_id"].tolist() == ["q2"] * 3 + ["q4"] * 3
    assert beams["beam"].tolist() == [0, 1, 2] * 2
    assert beams[["logprob", "n_tokens", "entropy"]].isna().all(axis=None)

    options = questions().assign(options=[["a", "b"]] * 6)
    with pytest.raises(ValueError, match="Options are compared by"):
        sample_from_server(
            options,
            split="",
            few_shot=None,
            served=None,
            draws=None,
            api=None,
            **paths,
        )

    shown = "Prompt: Shown?\nAnswer: Norway\n\nPrompt: Fact 2?\nAnswer:"
    assert shown in {body["prompt"] for body in fake.bodies}


def test_a_chat_has_the_turns_of_local_decoding():
    question = questions().iloc[[2]]
    turns = few_shot_bodies(questions(), question, FewShot(1, chat="turns"))["q2"]["messages"]
    expected_turns = [("user", "Shown?"), ("assistant", "Norway"), ("user", "Fact 2?")]
    assert turns == [{"role": role, "content": content} for role, content in expected_turns]
    body = few_shot_bodies(questions(), question, FewShot(1, chat="one_message"))["q2"]
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert body["messages"][0]["content"].endswith("Prompt: Fact 2?\nAnswer:")


# Ceilings and the key


def test_requests_above_a_ceiling_are_refused_before_any_is_sent(fake):
    with pytest.raises(ServerError, match=r"needs 6 more requests .*api\.max_requests 5;"):
        fake.sample(prompts(2), n=3, reach={"max_requests": 5})
    # 2 x 3 requests with 23 bytes, 8 + 8 tokens in and 20 out, at 10 and 100 per million
    prices = {"price_input": 10, "price_output": 100}
    cost = 6 * (16 * 10 + 20 * 100) / 1e6
    with pytest.raises(ServerError, match=r"above api\.max_cost 0\.0129; raise it to 0\.01"):
        fake.sample(prompts(2), n=3, reach={"max_cost": 0.0129, **prices})
    # a request with 16 tokens in and 3 x 20 out
    dear = {"max_cost": 59, "price_output": 1e6}
    with pytest.raises(ServerError, match=r"at most 60 out, cost about 60\.00"):
        fake.sample(prompts(1), n=3, samples_per_request=3, reach=dear)
    assert not fake.bodies
    fake.sample(prompts(2), n=3, reach={"max_cost": cost + 1e-9, **prices})
    assert len(fake.bodies) == fake.booked == 6


def test_the_key_is_in_no_file_and_no_message(fake, tmp_path, caplog):
    fake.write_answer = lambda question, seed: f"my key is {KEY}"
    [[sample]] = fake.sample(prompts(1))
    assert sample.text == " my key is [key]"
    fake.next_replies = [error(401, message=f"Incorrect API key: {KEY}")]
    with pytest.raises(ServerError, match=r"Incorrect API key: \[key\]"):
        fake.sample(prompts(2))
    files = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY in text for text in [*files, caplog.text])
    # Some servers accept any key: a common word as key does not change answers.
    fake.write_answer = lambda question, seed: "none of these"
    assert texts(fake.sample(prompts(3)[2:], api_key="none")) == [[" none of these"]]


# Replies
BODY = {"messages": [{"role": "user", "content": "?"}]}


def read(*choices, body=BODY, served=None, **fields):
    served = served or Served("http://a/v1", "m1", reasoning="keep")
    return read_samples({"choices": list(choices), **fields}, body, served, SECTION).samples


def choice_of(content, **message):
    return chosen(BODY, content, message={"content": content, **message})


@pytest.mark.parametrize(
    ("choice", "text", "thought"),
    [
        (choice_of("<think>\nParis? Yes.\n</think>\n\nParis\nmore"), "Paris", "Paris? Yes."),
        (choice_of("hm, so\n</think>Paris"), "Paris", "hm, so"),  # opened in the prompt
        (choice_of("<think>a</think><think>b</think> Paris"), "Paris", "b"),
        (choice_of("\n\nParis", reasoning_content="hm"), "Paris", "hm"),
        (choice_of("Paris", reasoning="hm"), "Paris", "hm"),
        (choice_of("<think>\nand so on", finish_reason="length"), "", "and so on"),
        (choice_of(None, reasoning_content="hm"), "", "hm"),
        (choice_of("Paris\nis"), "Paris", ""),
        (choice_of(" Paris. Or <think> not"), " Paris. Or <think> not", ""),
        (choice_of(None, refusal="I cannot."), "I cannot.", ""),
        (choice_of(""), "", ""),
    ],
)
def test_the_answer_is_separated_from_the_reasoning(choice, text, thought):
    [sample] = read(choice)
    assert sample.text == text
    assert thought in sample.reasoning and bool(thought) == bool(sample.reasoning)
    served = Served("http://a/v1", "m1", reasoning="drop")
    assert read(choice, served=served)[0] == sample._replace(reasoning="")
    if thought:
        with pytest.raises(ServerError, match=r"c\.api\.reasoning is none, but the"):
            read(choice, served=Served("http://a/v1", "m1"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"n": 4, "samples_per_request": 4},
            r"samples_per_request is 4, but the server gave 1 of 4",
        ),
        ({"logprobs": True}, r"logprobs is true, but the server gave no"),
    ],
)
def test_a_server_that_ignores_a_setting_is_refused_with_its_key(fake, settings, message):
    fake.next_replies = [{"choices": [chosen({"prompt": ""}, "x")]}]
    with pytest.raises(ServerError, match=rf"c\.api\.{message}"):
        fake.sample(prompts(1), **settings)
    assert len(fake.bodies) == fake.booked == 1 and fake.kept == 0


def choice_of_tokens(tokens, *, is_chat, with_bytes=False):
    """A choice of a server that goes on after the line break: text and log-probabilities."""
    text = b"".join(token for token, _ in tokens).decode()
    names = [token.decode(errors="replace") for token, _ in tokens]
    values = [value for _, value in tokens]
    if not is_chat:
        numbers = {"tokens": names, "token_logprobs": values}
        return {"index": 0, "finish_reason": "stop", "text": text, "logprobs": numbers}
    content = [
        {"token": name, "logprob": value, "bytes": list(token) if with_bytes else None}
        for name, value, (token, _) in zip(names, values, tokens, strict=True)
    ]
    message = {"role": "assistant", "content": text}
    return chosen({"messages": []}, text, message=message, logprobs={"content": content})


FURTHER = [(b"\n", -2.0), (b"Prompt", -4.0), (b": ?", -0.3)]


@pytest.mark.parametrize("is_chat", [False, True])
@pytest.mark.parametrize(
    ("tokens", "answer", "expected"),
    [
        ([(b" Quito", -0.15), *FURTHER], " Quito", (-0.15, 1)),
        ([(b" Qui", -0.1), (b"to", -0.05), *FURTHER], " Quito", (-0.15, 2)),
        ([(b" Quito", -0.1), (b".\n\n", -0.05), *FURTHER], " Quito.", (-0.15, 2)),
        (FURTHER, "", (None, None)),
    ],
)
def test_only_the_tokens_of_a_cut_answer_count(is_chat, tokens, answer, expected):
    served = Served("http://a/v1", "m1", logprobs=True, request={"stop": None})
    reply = {"choices": [choice_of_tokens(tokens, is_chat=is_chat)]}
    [sample] = read_samples(reply, {}, served, "c.api").samples
    assert sample.text == answer
    assert (sample.logprob, sample.n_tokens) == pytest.approx(expected)


def test_tokens_that_do_not_spell_a_cut_answer_are_refused_unless_their_bytes_do():
    served = Served("http://a/v1", "m1", logprobs=True)
    tokens = [(b" \xc3", -0.1), (b"\x96d", -0.05), *FURTHER]  # a letter of two tokens
    choice = choice_of_tokens(tokens, is_chat=True, with_bytes=True)
    [sample] = read_samples({"choices": [choice]}, {}, served, "c.api").samples
    assert (sample.text, sample.n_tokens) == (" Öd", 2)
    assert sample.logprob == pytest.approx(-0.15)
    for is_chat in (False, True):
        choice = choice_of_tokens(tokens, is_chat=is_chat)
        with pytest.raises(ServerError, match=r"its tokens do not spell the answer; set it to"):
            read_samples({"choices": [choice]}, {}, served, "c.api")


def test_a_refusal_is_an_answer_without_log_probability(fake):
    fake.next_replies = [{"choices": [choice_of(None, refusal="I cannot.")]}]
    [[sample]] = fake.sample(CHAT[:1], logprobs=True)
    assert sample == ServedSample("I cannot.", None, None, "refusal")
    fake.next_replies = [error(400, "content_filter")]
    assert fake.sample(CHAT[1:2], logprobs=True) == [
        [ServedSample("", None, None, "content_filter")]
    ]


CONTEXT_ERRORS = {
    "OpenAI": error(400, "context_length_exceeded", message="too long"),
    "vLLM": error(400, 400, message="This model's maximum context length is 64 tokens."),
    "llama.cpp": error(400, 400, message="the request exceeds the available context size"),
}


@pytest.mark.parametrize("reply", CONTEXT_ERRORS.values(), ids=CONTEXT_ERRORS)
def test_a_prompt_that_exceeds_the_context_is_refused_with_a_remedy(fake, reply):
    fake.next_replies = [reply]
    with pytest.raises(ServerError, match=r"do not fit into .*lower prompts\.few_shot or"):
        fake.sample(prompts(1))
    assert len(fake.bodies) == 1


def test_cut_and_empty_answers_are_counted_in_the_log(fake, caplog):
    fake.next_replies = [
        {"choices": [chosen({"prompt": ""}, "x", finish_reason="length")]},
        {"choices": [chosen({"prompt": ""}, "")]},
    ]
    fake.sample(prompts(3), reach={"concurrency": 1})
    assert "1 of 3 answers were cut" in caplog.text
    assert "1 of 3 answers are empty" in caplog.text


# A model that changes


def test_another_model_behind_the_same_name_is_refused_and_its_replies_are_not_kept(fake):
    fake.sample(prompts(2))
    fake.reply_fields = {"model": "m1-2027"}
    message = "has answered as 'm1-2026' so far and now answers as 'm1-2027'"
    with pytest.raises(ServerError, match=message):
        fake.sample(prompts(4))
    assert fake.kept == 2
    # A new name in the config is another model.
    fake.sample(prompts(4), model="m1-2027")


def test_another_fingerprint_is_logged_once_and_its_replies_are_kept(fake, caplog):
    fake.reply_fields = {"model": "m1", "system_fingerprint": "fp_a"}
    fake.sample(prompts(2))
    assert "system_fingerprint" not in caplog.text
    fake.reply_fields = {"model": "m1", "system_fingerprint": "fp_b"}
    fake.sample(prompts(6))
    assert caplog.text.count("system_fingerprint is 'fp_b' and was 'fp_a'") == 1
    assert fake.kept == 6
    listed = (fake.folder / "replies" / "answered_by.csv").read_text().splitlines()
    assert [line.split(",")[2:] for line in listed] == [
        ["model", "system_fingerprint"],
        ["m1", "fp_a"],
        ["m1", "fp_b"],
    ]


# A server with faults

TWO_CHOICES = as_json({"choices": [chosen({"prompt": ""}, "x", i) for i in range(2)]})


def test_requests_are_repeated_after_errors_cuts_and_bad_replies(fake):
    bad = {"choices": [chosen({"prompt": ""}, "x", logprobs={"token_logprobs": [0.5]})]}
    fake.next_replies = [
        *(error(500), cut, cut_in_the_middle, error(503), Response("<html>")),
        *(bad, as_json({"choices": []}), as_json({"choices": [chosen(BODY, 7)]})),
        as_json({"choices": [chosen({"prompt": ""}, "\ud800")]}),
        TWO_CHOICES,
        as_json({"choices": [chosen({"prompt": ""}, "x")], "model": ["m1"]}),
    ]
    answers = texts(fake.sample(prompts(6), reach={"retries": 20}))
    assert set(fake.asked.values()) == {1} and fake.kept == 6
    assert fake.booked == len(fake.bodies) == 6 + 11  # all requests that were sent
    assert all(text.startswith(" thing") for [text] in answers)


def test_repeated_bad_replies_stop_the_job_and_other_replies_are_kept(fake):
    fake.write_answer = lambda question, seed: 7 if question == "Fact 2?" else "x"
    with pytest.raises(ServerError, match=r"not a completion.*Answers so far are kept"):
        fake.sample(CHAT, reach={"concurrency": 1, "retries": 1})
    assert (fake.kept, fake.booked) == (2, 4)  # two of the requests had a bad reply


@pytest.mark.parametrize(
    "reply",
    [Response("<html>"), TWO_CHOICES, as_json({"choices": []}), error(500), cut],
    ids=["unreadable", "more", "fewer", "failed", "cut"],
)
def test_no_number_of_runs_sends_more_requests_than_the_ceiling(fake, reply):
    fake.next_replies = [reply] * 100
    for run in range(3):
        with pytest.raises(ServerError, match=r"max_requests 4.*raise it") as error_info:
            fake.sample(prompts(4), reach={"max_requests": 4, "retries": 8})
        assert ("cannot be repeated" in str(error_info.value)) == (run == 0)
    assert len(fake.bodies) == fake.booked == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_prompts_follow_no_redirect(fake, tmp_path, status):
    with FakeModel(tmp_path / "elsewhere") as elsewhere:
        target = f"{elsewhere.url}/completions"
        fake.next_replies = [Response("", status, {"Location": f"{target}?key=hunter22"})]
        with pytest.raises(
            ServerError, match=rf"redirects requests to {target}, and"
        ) as error_info:
            fake.sample(prompts(1))
        assert "hunter22" not in str(error_info.value)
        assert not elsewhere.bodies and len(fake.bodies) == fake.booked == 1


def test_a_damaged_reply_is_requested_again(fake, caplog):
    first_run = fake.sample(prompts(3))
    for path, content in zip(
        sorted(fake.folder.glob("replies/*/*.json")),
        ("{", '{"samples": []}', '{"samples": [{"text": 1}]}'),
        strict=True,
    ):
        path.write_text(content)
    assert fake.sample(prompts(3)) == first_run
    assert caplog.text.count("is damaged") >= 3 and fake.asked.total() == 6


NAMES = "choices index message content text logprobs token_logprobs finish_reason model".split()
JSON = any_json(NAMES, 0)


@given(JSON | st.fixed_dictionaries({"choices": st.lists(JSON, min_size=1, max_size=2)}))
def test_any_json_is_read_as_samples_or_as_a_bad_reply(value):
    served = Served("http://a/v1", "m1", reasoning="keep")
    try:
        reply = read_samples(value, BODY, served, SECTION)
    except BadReplyError:
        return
    assert len(reply.samples) == 1
    json.dumps(reply)

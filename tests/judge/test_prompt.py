"""Requests to a judge by hand: one answer, several, and as in the paper's release."""

import pytest
from judge_server import PROMPT, RELEASED, candidates, response

from persistcal.judge.prompt import (
    JudgeSettings,
    candidate_of,
    request_body,
    request_key,
    split_prompt,
)
from persistcal.judge.reply import read_reply
from persistcal.questions.labels import JudgeError
from persistcal.server.spending import estimate

FORM = {"form": "released", "together": True, "prompt": RELEASED}


@pytest.fixture
def fake(fake):
    fake.changed = {**FORM, "request": {}}
    return fake


def answers_to(references, *answers):
    return [candidate_of(f"{references[0]}?", references, answer) for answer in answers]


def body_of(some, prompt, options=(), **changes):
    settings = JudgeSettings("openai", "m", prompt, "", 0, 0, 0, 0, request=dict(options))
    return request_body(some, JudgeSettings(**{**vars(settings), **changes}))


def released(references, *answers, prompt=RELEASED, **options):
    some = answers_to(references, *answers)
    return body_of(some, **{**FORM, "prompt": prompt}, options=options)


def test_the_request_about_one_answer():
    prompt = "sys\n---\n{question}/{references}/{answer}"
    body = body_of([candidate_of("Qé", ["r"], "a")], prompt, {"max_completion_tokens": 16})
    # system "sys": 3 bytes = 1 token; user "Qé/- r/a": 9 bytes = 3 tokens; 8 more for each
    # cost: (20 x 2.5 + 16 x 15) / 10^6 = 290 / 10^6
    cost = pytest.approx(580e-6)
    assert estimate([body, body], price_input=2.5, price_output=15) == (2, 40, 32, cost)


def test_the_request_about_several_answers():
    body = body_of(
        answers_to(["fact 1"], "x", "{question}"),
        "s\n---\n{question}|{references}|{answers}",
        {"max_completion_tokens": 16, "max_tokens": None, "seed": 3},
        together=True,
    )
    assert body["messages"][1]["content"] == "fact 1?|- fact 1|1. x\n2. {question}"
    assert (body["max_completion_tokens"], body["seed"]) == (32, 3)
    # "s": 1 + 8 tokens; 36 bytes: 12 + 8 tokens
    assert estimate([body], price_input=0, price_output=0)[:3] == (1, 29, 32)
    with pytest.raises(JudgeError, match=r"below .* has the unknown field \{answer\}"):
        body_of(answers_to(["a"], "x"), PROMPT, together=True)


def test_places_of_the_prompt_are_filled_in_one_pass():
    candidate = candidate_of("What is {answer}?", ["{question}", "b", "b"], " 4  2 ")
    body = body_of([candidate], "s\n---\n{question}|{references}|{answer}")
    assert body["messages"][1]["content"] == "What is {answer}?|- {question}\n- b|4 2"
    system, user = split_prompt(PROMPT, ())
    assert "any one of them is enough" in system
    assert user.endswith("Label:")
    with pytest.raises(JudgeError, match="line '---'"):
        split_prompt("{question}{references}{answer}", ())
    for prompt, said in (
        ("s\n---\n{question}{answer}", r"below its line '---' lacks the field \{references\}"),
        (f"{{question}}{PROMPT}", r"above its line '---' has the unknown field \{question\}"),
        (f"{PROMPT}{{answer}}", r"below its line '---' has the field \{answer\} 2 times"),
    ):
        with pytest.raises(JudgeError, match=said):
            split_prompt(prompt, ())


def test_replies_that_were_paid_one_by_one_keep_their_keys():
    body = body_of(candidates(1), "s\n---\n{question}{references}{answer}", {"n": 1})
    assert request_key(body) == "a323c65e5c8d297b532f60453de6466a"
    assert request_key(body, 2) == "a323c65e5c8d297b532f60453de6466a-2"


# As in the paper's release: one message, a line of one letter per answer ---------------------


@pytest.mark.parametrize("backend", ["openai", "openai_batch"])
def test_one_letter_per_answer(fake, backend):
    some = answers_to(["it's a", "b"], "b", "x", "it's a") + answers_to(["c"], "c", "y")
    fake.replies["c"] = response("1. n.\n2: R")
    for _ in range(2):
        assert fake.ask(some, backend=backend) == "RWRNR"
    assert fake.asked == {"b|x|it's a": 1, "c|y": 1}
    # asked one by one, each is a list of one
    assert fake.ask(some[:2], backend=backend, together=False) == "RW"
    assert fake.asked["x"] == 1


def test_the_request_by_hand():
    prompt = "1 {question} {references}\n{answers}\n---\n2 {question} {references}\n{answers}"
    body = released(["a"], "x", prompt=prompt)
    assert body == {
        "model": "m",
        "input": [{"role": "user", "content": "1 a? a\n1. x"}],
        "temperature": 0,
        "max_output_tokens": 16,
    }
    several = released(["a", "b'"], *"vwxyz", prompt=prompt, seed=3)
    listed = "1. v\n2. w\n3. x\n4. y\n5. z"
    assert several["input"][0]["content"] == f"2 a? ['a', \"b'\"]\n{listed}"
    # 4 x 5 - 1 + 3 = 22 tokens for five lines
    assert (several["max_output_tokens"], several["seed"]) == (22, 3)
    # 11 bytes = 4 tokens, and 8
    assert estimate([body], price_input=0, price_output=0)[:3] == (1, 12, 16)


def test_the_prompt_has_a_wording_for_one_reference_and_one_for_several():
    one, several = (
        released(truths, "x")["input"][0]["content"] for truths in (["a"], ["a", "b"])
    )
    assert "Ground truth answer: a\n" in one
    assert "Ground truth answers: ['a', 'b']\n" in several
    for text in (one, several):
        assert "semantically consistent" in text and "1. x\n" in text
    for lacks in ("{question}", "{references}", "{answers}"):
        for place in ("above", "below"):
            parts = RELEASED.split("\n---\n")
            parts[place == "below"] = parts[place == "below"].replace(lacks, "")
            with pytest.raises(JudgeError, match=rf"{place} its line .* lacks .* \{lacks}"):
                released(["a"], "x", prompt="\n---\n".join(parts))
    with pytest.raises(JudgeError, match="no line '---'"):
        released(["a"], "x", prompt="{question}{references}{answers}")


@pytest.mark.parametrize("field", ["reasoning_effort", "max_completion_tokens", "max_tokens"])
def test_fields_of_chat_completions_are_refused(field):
    assert field not in released(["a"], "x", **{field: None})
    with pytest.raises(JudgeError, match=f"judge.request.{field} is a field of chat"):
        released(["a"], "x", **{field: 16})


REFUSED = {"output": [{"type": "message", "content": [{"refusal": "No."}]}]}


@pytest.mark.parametrize(
    ("said", "labels"),
    [
        (response("1. R\n2. W\n3. R\nThat is all."), ("correct", "incorrect")),
        (response("R\nN"), ("correct", "not_attempted")),
        (response("1. R"), (None, None)),
        (response("1. CORRECT\n2. W"), (None, "incorrect")),
        (response("1. R\n2. ", status="incomplete"), ("correct", None)),
        (response("R\nW", incomplete_details={"reason": "content_filter"}), (None, None)),
        (response("", output=[]), (None, None)),
        (response("", **REFUSED), (None, None)),
    ],
)
def test_letters_of_a_response_are_read_strictly(said, labels):
    assert read_reply(said, 2).labels == labels


def test_a_response_that_failed_is_asked_again(fake):
    fake.next_replies = [response("1. W\n2. W", status="failed")]
    assert fake.ask(answers_to(["a"], "a", "b")) == "RW"
    fake.replies["c"] = response("1. R\n2. W", status="failed")
    for _ in range(2):
        assert fake.ask(answers_to(["c"], "c", "b"), retries=0) == "??"
    assert fake.asked == {"a|b": 1, "c|b": 1}


def test_a_job_stops_for_a_person_and_asks_one_by_one_unless_told_otherwise():
    settings = JudgeSettings("openai", "judge", "", "http://h/v1", 1, 1, 1, 1)
    assert (settings.undecided, settings.together, settings.form) == ("stop", False, "chat")


def test_words_are_no_letters_and_letters_no_words():
    """A reply is read by what was asked, so that none is taken for another."""
    assert read_reply(response("CORRECT")).labels == (None,)
    chat = {"choices": [{"message": {"content": "R"}}]}
    assert read_reply(chat).labels == (None,)

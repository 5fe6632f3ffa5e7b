"""The judge asked as in the paper's release: one message, a line of one letter per answer."""

import pytest
from judge_server import RELEASED, error, response

from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import estimate
from persistcal.judge.prompt import candidate_of, request_body
from persistcal.judge.reply import BadReplyError, read_reply


@pytest.fixture
def fake(fake):
    fake.changed = {"form": "released", "together": True, "prompt": RELEASED, "request": {}}
    return fake


def answers_to(references, *answers):
    return [candidate_of(f"{references[0]}?", references, answer) for answer in answers]


@pytest.mark.parametrize("backend", ["openai", "openai_batch"])
def test_one_letter_per_answer(fake, backend):
    some = answers_to(["it's a", "b"], "b", "x", "it's a") + answers_to(["c"], "c", "y")
    fake.replies["c"] = response("1. n.\n2: R")
    expected = "RWRNR"
    for _ in range(2):
        assert fake.ask(some, backend=backend) == expected
    assert fake.asked == {"b|x|it's a": 1, "c|y": 1}
    # asked one by one, each is a list of one
    assert fake.ask(some[:2], backend=backend, together=False) == expected[:2]
    assert fake.asked["x"] == 1


def body_of(references, *answers, prompt=RELEASED, **options):
    return request_body(
        answers_to(references, *answers),
        model="m",
        prompt=prompt,
        options=options,
        together=True,
        form="released",
    )


def test_the_request_by_hand():
    prompt = "1 {question} {references}\n{answers}\n---\n2 {question} {references}\n{answers}"
    body = body_of(["a"], "x", prompt=prompt)
    assert body == {
        "model": "m",
        "input": [{"role": "user", "content": "1 a? a\n1. x"}],
        "temperature": 0,
        "max_output_tokens": 16,
    }
    several = body_of(["a", "b'"], *"vwxyz", prompt=prompt, seed=3)
    listed = "1. v\n2. w\n3. x\n4. y\n5. z"
    assert several["input"][0]["content"] == f"2 a? ['a', \"b'\"]\n{listed}"
    # 4 x 5 - 1 + 3 = 22 tokens for five lines
    assert (several["max_output_tokens"], several["seed"]) == (22, 3)
    # 11 bytes = 4 tokens, and 8
    assert estimate([body], price_input=0, price_output=0)[:3] == (1, 12, 16)


def test_the_prompt_has_a_wording_for_one_reference_and_one_for_several():
    one, several = (
        body_of(truths, "x")["input"][0]["content"] for truths in (["a"], ["a", "b"])
    )
    assert "Ground truth answer: a\n" in one
    assert "Ground truth answers: ['a', 'b']\n" in several
    for text in (one, several):
        assert "semantically consistent" in text and "1. x\n" in text
    for lacks in ("{question}", "{references}", "{answers}"):
        for place in ("above", "below"):
            parts = RELEASED.split("\n---\n")
            parts[place == "below"] = parts[place == "below"].replace(lacks, "")
            with pytest.raises(JudgeError, match=rf"lacks \{lacks} {place} its line"):
                body_of(["a"], "x", prompt="\n---\n".join(parts))
    with pytest.raises(JudgeError, match="no line '---'"):
        body_of(["a"], "x", prompt="{question}{references}{answers}")


@pytest.mark.parametrize("field", ["reasoning_effort", "max_completion_tokens", "max_tokens"])
def test_fields_of_chat_completions_are_refused(field):
    assert field not in body_of(["a"], "x", **{field: None})
    with pytest.raises(JudgeError, match=f"judge.request.{field} is a field of chat"):
        body_of(["a"], "x", **{field: 16})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (response("1. R\n2. W\n3. R\nThat is all."), "RW"),
        (response("R\nN"), "RN"),
        (response("1. R"), "??"),
        (response("1. CORRECT\n2. W"), "?W"),
        (response("1. R\n2. ", status="incomplete"), "R?"),
        (response("1. R\n2. W", incomplete_details={"reason": "content_filter"}), "??"),
        (response("", output=[]), "??"),
        (
            response("", output=[{"type": "message", "content": [{"refusal": "No."}]}]),
            "??",
        ),
        (error(400, "content_filter"), "??"),
        (response("1. R\n2. W", status="failed"), "??"),
    ],
)
def test_replies_that_cannot_be_read_wait_for_a_person(fake, said, expected):
    fake.replies["a"] = said
    some = answers_to(["a"], "a", "b")
    for _ in range(2):
        assert fake.ask(some, retries=0) == expected
    assert fake.asked.total() == 1


def test_a_response_that_failed_is_asked_again(fake):
    fake.next_replies = [response("1. W\n2. W", status="failed")]
    assert fake.ask(answers_to(["a"], "a", "b")) == "RW"
    with pytest.raises(BadReplyError, match="failed"):
        read_reply(response("R", status="failed"))


def test_words_are_no_letters_and_letters_no_words():
    """A reply is read by what was asked, so that none is taken for another."""
    assert read_reply(response("CORRECT")).labels == (None,)
    chat = {"choices": [{"message": {"content": "R"}}]}
    assert read_reply(chat).labels == (None,)

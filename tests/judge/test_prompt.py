"""Requests to a judge, written by hand: about one answer and about several."""

import pytest
from judge_server import PROMPT, candidates

from persistcal.judge.messages import (
    JudgeSettings,
    candidate_of,
    request_body,
    request_key,
    split_prompt,
)
from persistcal.questions.labels import JudgeError
from persistcal.server.spending import estimate

FREE = {"price_input": 0, "price_output": 0, "max_requests": 0, "max_cost": 0}


def answers_to(references, *answers):
    return [candidate_of(f"{references[0]}?", references, answer) for answer in answers]


def body_of(answers, prompt, options=(), **changes):
    settings = {"request": dict(options), **FREE, **changes}
    return request_body(answers, JudgeSettings("openai", "m", prompt, "", **settings))


def test_a_request_about_one_answer_and_its_cost_by_hand():
    prompt = "sys\n---\n{question}/{references}/{answer}"
    body = body_of([candidate_of("Qé", ["r"], "a")], prompt, {"max_completion_tokens": 16})
    # system "sys": 3 bytes = 1 token; user "Qé/- r/a": 9 bytes = 3 tokens; 8 more for each
    # cost of one: (20 x 2.5 + 16 x 15) / 10^6 = 290 / 10^6
    cost = pytest.approx(580e-6)
    assert estimate([body, body], price_input=2.5, price_output=15) == (2, 40, 32, cost)


def test_a_request_about_several_answers_and_its_cost_by_hand():
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


@pytest.mark.parametrize(("n", "limit"), [(1, 16), (3, 16), (4, 18), (10, 42)])
def test_a_request_as_released_by_hand(n, limit):
    body = body_of(
        answers_to(["Oslo", "d'Or"], *"abcdefghij"[:n]),
        "{question}|{references_line}|{answers}",
        {"max_output_tokens": 4, "reasoning_effort": None},
        endpoint="responses",
        together=True,
    )
    listed = "\n".join(f"{i}. {c}" for i, c in enumerate("abcdefghij"[:n], start=1))
    asked = {"role": "user", "content": f"""Oslo?|['Oslo', "d'Or"]|{listed}"""}
    # One user message; at most 4n - 1 + 3 tokens, at least 16
    rest = {"model": "m", "temperature": 0, "max_output_tokens": limit}
    assert body == {"input": [asked], **rest}
    assert estimate([body], price_input=0, price_output=0).output_tokens == limit


def test_fields_of_the_prompt_are_filled_once_and_wrong_fields_are_refused():
    candidate = candidate_of("What is {answer}?", ["{question}", "b", "b"], " 4  2 ")
    body = body_of([candidate], "s\n---\n{question}|{references}|{answer}")
    assert body["messages"][1]["content"] == "What is {answer}?|- {question}\n- b|4 2"
    system, user = split_prompt(PROMPT)
    assert "any one of them is enough" in system
    assert user.endswith("Label:")
    for prompt, message in (
        ("s\n---\n{question}{answer}", r"below its line '---' lacks the field \{references\}"),
        (f"{{question}}{PROMPT}", r"above its line '---' has the unknown field \{question\}"),
        (f"{PROMPT}{{answer}}", r"below its line '---' has the field \{answer\} 2 times"),
        ("{question}{answer}", r"prompt lacks the field \{references\}"),
        ("{question}{references}{references_line}{answer}", r"field \{references_line\}"),
    ):
        with pytest.raises(JudgeError, match=message):
            split_prompt(prompt)


@pytest.mark.parametrize(
    ("references", "line"), [(["Oslo"], "Oslo"), (["Oslo", "d'Or"], """['Oslo', "d'Or"]""")]
)
def test_a_published_prompt_is_one_message_with_references_on_one_line(references, line):
    prompt = "Question: {question}\nGold target: {references_line}\nPredicted: {answer}\n"
    [message] = body_of([candidate_of("Which?", references, "Rome")], prompt)["messages"]
    content = f"Question: Which?\nGold target: {line}\nPredicted: Rome"
    assert message == {"role": "user", "content": content}


def test_keys_of_stored_replies_do_not_change():
    body = body_of(candidates(1), "s\n---\n{question}{references}{answer}", {"n": 1})
    assert request_key(body) == "a323c65e5c8d297b532f60453de6466a"
    assert request_key(body, 2) == "a323c65e5c8d297b532f60453de6466a-2"


def test_by_default_a_job_stops_for_a_person_and_asks_about_single_answers():
    settings = JudgeSettings("openai", "judge", "", "http://h/v1", **FREE)
    assert (settings.undecided, settings.together) == ("stop", False)

"""Judging a question's answers together, and stopping where a person has to decide."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from answer_tables import questions_table
from judge_server import PROMPT, TOGETHER, candidates, completion, error

from benchmarks import judge_label_noise
from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import estimate
from persistcal.judge.prompt import candidate_of, request_body, request_key
from persistcal.judge.queue import human_labels_digest
from persistcal.judge.settings import JudgeSettings
from persistcal.store import artifacts


@pytest.fixture
def fake(fake):
    fake.changed = {"together": True, "prompt": TOGETHER}
    return fake


def one_by_one(fake, some, **changes):
    return fake.ask(some, together=False, prompt=PROMPT, **changes)


def answers_to(question, *answers):
    return [candidate_of(f"Question {question}?", [f"fact {question}"], a) for a in answers]


@pytest.mark.parametrize("backend", ["openai", "openai_batch"])
def test_one_request_asks_about_all_answers_to_a_question(fake, backend):
    some = answers_to(0, "fact 0", "b", "c") + answers_to(1, "fact 1") + answers_to(2, "d", "e")
    expected = "RWWRWW"
    assert fake.ask(some, backend=backend) == expected
    assert fake.asked == {"fact 0|b|c": 1, "fact 1": 1, "d|e": 1}
    assert fake.booked == 3
    # kept for both backends; and a checkpoint with the same answers is the same request
    for other in ("openai", "openai_batch"):
        assert fake.ask(some, backend=other) == expected
    assert fake.asked.total() == 3
    # another checkpoint's answers are judged anew, also one that was judged before
    assert fake.ask(answers_to(0, "b", "fact 0"), backend=backend) == "WR"
    assert fake.asked.total() == 4
    # and one by one has requests of its own
    assert one_by_one(fake, some, backend=backend) == expected
    assert fake.asked.total() == 10


def test_the_same_answer_twice_is_one_line(fake):
    some = answers_to(0, "fact 0", "b") + answers_to(0, " b ", "fact  0")
    assert fake.ask(some) == "RWWR"
    assert fake.asked == {"fact 0|b": 1}


@pytest.mark.parametrize("backend", ["openai", "openai_batch"])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("CORRECT\nINCORRECT", "RW"),
        ("1. CORRECT\n2. INCORRECT\n3. CORRECT\nThat is all.", "RW"),
        ("CORRECT", "??"),
        ("", "??"),
        ("1. CORRECT\n2. It is INCORRECT", "R?"),
        ("Labels:\nCORRECT\nINCORRECT", "??"),
    ],
)
def test_lines_too_many_too_few_and_unreadable(fake, tmp_path, reply, expected, backend):
    fake.replies["fact 0"] = completion(reply)
    some = answers_to(0, "fact 0", "b") + answers_to(1, "fact 1", "b")
    for _ in range(2):  # kept, so the second time is the same
        assert fake.ask(some, backend=backend) == expected + "RW"
    assert fake.asked.total() == 2
    waiting = fake.waiting if (tmp_path / "queue.csv").exists() else []
    assert len(waiting) == expected.count("?")


def test_refusals_and_garbage_are_of_the_whole_question(fake):
    fake.replies["a"] = completion(None, refusal="No.")
    fake.replies["b"] = error(400, "content_filter")
    fake.replies["c"] = {"no": "completion"}
    some = [c for i, first in enumerate("abcd") for c in answers_to(i, first, "x")]
    assert fake.ask(some, retries=1) == "?" * 6 + "W" * 2


def test_a_person_overrides_single_answers(fake):
    fake.replies["fact 0"] = completion("1. CORRECT\n2. Hm")
    some = answers_to(0, "fact 0", "b")
    assert fake.ask(some) == "R?"
    fake.fill_in(b="correct")
    assert fake.ask(some) == "Rr"
    assert fake.asked.total() == 1  # the request is as it was, and so is its reply
    # whoever judges, and with whichever answers it comes
    more = answers_to(0, "b", "fact 0")
    assert fake.ask(more) == "rR"
    assert fake.ask(answers_to(0, "b")) == "r"
    assert one_by_one(fake, answers_to(0, "b")) == "r"
    assert fake.asked.total() == 2


def test_ceilings_count_requests_and_the_length_of_replies(fake):
    some = [c for i in range(4) for c in answers_to(i, "a", "b", "c")]
    with pytest.raises(JudgeError, match=r"needs 4 more requests .*at most 192 out"):
        fake.ask(some, max_requests=3)  # 4 requests x 3 labels x 16 tokens
    assert fake.ask(some, max_requests=4) == "W" * 12


def test_the_request_by_hand():
    body = request_body(
        answers_to(1, "x", "{question}"),
        model="m",
        prompt="s\n---\n{question}|{references}|{answers}",
        options={"max_completion_tokens": 16, "max_tokens": None, "seed": 3},
        together=True,
    )
    assert body["messages"][1]["content"] == "Question 1?|- fact 1|1. x\n2. {question}"
    assert (body["max_completion_tokens"], body["seed"]) == (32, 3)
    # "s": 1 + 8 tokens; 39 bytes: 13 + 8 tokens
    assert estimate([body], price_input=0, price_output=0)[:3] == (1, 30, 32)
    with pytest.raises(JudgeError, match=r"lacks \{answers\}"):
        request_body(answers_to(1, "x"), model="m", prompt=PROMPT, options={}, together=True)


def test_replies_that_were_paid_one_by_one_keep_their_keys():
    body = request_body(
        candidates(1),
        model="m",
        prompt="s\n---\n{question}{references}{answer}",
        options={"n": 1},
    )
    assert request_key(body) == "a323c65e5c8d297b532f60453de6466a"


# Where a person has to decide ----------------------------------------------------------


@pytest.mark.parametrize("backend", ["openai", "openai_batch"])
def test_undecided_answers_stop_the_job_and_a_rerun_goes_on(fake, backend):
    fake.replies = {"fact 0": completion("?"), "wrong 1": completion(None, refusal="no")}
    some = candidates(5)
    stop = {"undecided": "stop", "backend": backend}
    for _ in range(2):
        with pytest.raises(JudgeError, match=r"^2 answers wait for a person: .*queue\.csv"):
            one_by_one(fake, some, **stop)
    assert fake.asked.total() == 5
    assert fake.booked == 5
    fake.fill_in(fact_0="correct")
    with pytest.raises(JudgeError, match=r"^1 answer waits"):
        one_by_one(fake, some, **stop)
    fake.fill_in(wrong_1="not_attempted")
    expected = "rnRWR"
    assert one_by_one(fake, some, **stop) == expected
    assert fake.asked.total() == 5


def test_stopping_is_what_happens_unless_told_otherwise():
    needed = "backend model prompt base_url max_requests max_cost price_input price_output"
    settings = JudgeSettings(**dict.fromkeys(needed.split()))
    assert (settings.undecided, settings.together) == ("stop", False)


def test_a_job_that_went_on_without_a_label_has_to_stop_when_told_to(fake, tmp_path):
    fake.replies["fact 0"] = completion("?")
    queue, noted = tmp_path / "queue.csv", tmp_path / "noted.csv"

    def digests():
        return [human_labels_digest(queue, noted, stop=stop) for stop in (False, True)]

    assert digests() == ["", ""]
    one_by_one(fake, candidates(2))
    goes_on, stops = digests()
    assert (goes_on, bool(stops)) == ("", True)
    fake.fill_in(fact_0="correct")
    assert digests()[0] == digests()[1] != stops


def test_label_noise_makes_contrast_sets_only_where_equal_answers_are_judged_anew(monkeypatch):
    """The benchmark's claim: nobody learns or forgets anything, and mistakes are frequent."""
    monkeypatch.setattr(judge_label_noise, "N_JUDGES", 400)
    same = [answered[:30] for answered in judge_label_noise.made_up_answers(drift=False)]
    for rate, together, noise in [(0.3, False, 0), (0.3, True, 0.42), (0, True, 0)]:
        correct, _ = judge_label_noise.judge(same, rate, together=together)
        # 2 x 0.3 x 0.7 = 0.42 for two independent mistakes, of which exactly one happens,
        # where the second answers differ, and so the requests
        apart = [
            a != b
            for one, other in combinations(same, 2)
            for a, b in zip(one, other, strict=True)
        ]
        share = judge_label_noise.contrast_share(correct)
        assert share == pytest.approx(noise * np.mean(apart), abs=0.01 * bool(noise))
    correct, _ = judge_label_noise.judge(same, 0.3, together=True)
    known = np.array([candidates[0].answer.startswith("right") for candidates in same[0]])
    assert (correct != known[:, None]).mean() == pytest.approx(0.3, abs=0.01)


def test_label_noise_is_measured_on_the_answers_of_a_study(tmp_path):
    questions = questions_table(n_train=1, n_test=3)
    questions.loc[3, "excluded"] = True
    (tmp_path / "questions").mkdir()
    artifacts.write(questions, tmp_path / "questions" / "atlas.parquet", artifacts.QUESTIONS)
    for checkpoint, answers in {"a": ["Norway", "Peru"], "b": ["Peru"]}.items():
        rows = [
            (f"q{i}", n, text, 0.4, [text]) for i in range(4) for n, text in enumerate(answers)
        ]
        clusters = pd.DataFrame(rows[::-1], columns=artifacts.CLUSTERS.schema.names)
        path = tmp_path / "clusters" / "atlas" / checkpoint / "atlas.parquet"
        path.parent.mkdir(parents=True)
        artifacts.write(clusters, path, artifacts.CLUSTERS)
    answered = judge_label_noise.answers_of(tmp_path, ["a", "b"])
    texts = [[[c.answer for c in candidates] for candidates in one] for one in answered]
    assert texts == [[["Norway", "Peru"]] * 2, [["Peru"]] * 2]
    correct, n_requests = judge_label_noise.judge(answered, 0, together=True)
    assert correct.all(axis=(1, 2)).tolist() == [True, False]
    assert not correct[1].any()
    assert n_requests == 4
    assert judge_label_noise.contrast_share(correct) == 1

"""A judge behind HTTP, request by request: asked, kept, counted, and left to a person."""

import logging
import sys
import threading
import time
import traceback

import pytest
from judge_server import (
    KEY,
    PROMPT,
    TOGETHER,
    as_json,
    candidates,
    completion,
    error,
    start_job,
)
from soak_budget import kill_after
from werkzeug import Response

from persistcal.judge.human_labels import human_labels_digest
from persistcal.judge.messages import candidate_of
from persistcal.questions.labels import JudgeError
from persistcal.store.sheets import SheetError

BOTH = pytest.mark.parametrize("backend", ["openai", "openai_batch"])


def together(fake, some, **changes):
    return fake.ask(some, **{"together": True, "prompt": TOGETHER, **changes})


def answers_to(question, *answers):
    return [candidate_of(f"Question {question}?", [f"fact {question}"], a) for a in answers]


def test_each_distinct_candidate_is_asked_once_and_kept(fake):
    some = candidates(10)
    assert fake.ask(some * 2) == "RW" * 10
    assert set(fake.asked.values()) == {1}
    # another job of the study, with one candidate more; the judged ones need no key
    assert fake.ask([*some, candidates(11)[-1]]) == "RW" * 5 + "R"
    assert fake.ask(some, api_key="") == "RW" * 5
    assert fake.asked.total() == 11
    # another model has replies of its own
    fake.ask(some, model="judge-2")
    assert fake.asked.total() == 21


def test_new_words_are_read_from_the_replies_that_are_kept(fake):
    some = candidates(2)
    fake.replies = {
        one.answer: completion(letter) for one, letter in zip(some, "YX", strict=True)
    }
    assert fake.ask(some) == "??"
    assert fake.ask(some, labels={"Y": "correct", "x": "incorrect"}) == "RW"
    assert fake.asked.total() == 2


def test_no_key_and_no_reference_say_so(fake):
    with pytest.raises(JudgeError, match="environment variable JUDGE_KEY is empty"):
        fake.ask(candidates(1), api_key=" ")
    with pytest.raises(JudgeError, match="has no reference answer"):
        fake.ask([candidate_of("Q?", [], "a")])


def test_after_a_failure_nothing_is_repeated_and_replies_on_their_way_are_kept(fake):
    fake.replies["fact 0"] = error(429, **{"Retry-After": "60"})
    fake.replies["wrong 1"] = lambda request: time.sleep(0.2) or error(401)
    said = as_json(completion("CORRECT"))
    fake.replies["fact 2"] = lambda request: time.sleep(0.4) or said
    begin = time.monotonic()
    with pytest.raises(JudgeError, match="failed"):
        fake.ask(candidates(3))
    assert time.monotonic() - begin < 30
    assert fake.asked == {"fact 0": 1, "wrong 1": 1, "fact 2": 1}
    assert (fake.kept, fake.booked) == (1, 3)
    assert fake.ask(candidates(3)[2:], api_key="") == "R"


@pytest.mark.parametrize(
    ("reply", "tries"),
    [
        (error(401, "invalid_api_key"), 1),
        (error(429, "insufficient_quota"), 1),
        (error(500), 4),
    ],
)
def test_a_failure_that_stays_stops_and_keeps_what_was_judged(fake, reply, tries):
    some = candidates(3)
    fake.ask(some[:2])
    before = fake.spent
    assert before[0] == 2 and before[1] > 0
    fake.replies["fact 2"] = reply
    with pytest.raises(JudgeError, match=r"server at .* failed .* Labels so far are kept"):
        fake.ask(some)
    assert fake.asked == {"fact 0": 1, "wrong 1": 1, "fact 2": tries}
    # The two of before are of the same length, so each costs as much as one more.
    assert fake.spent == pytest.approx([n * (2 + tries) / 2 for n in before])
    del fake.replies["fact 2"]
    assert fake.ask(some) == "RWR"


@BOTH
def test_two_jobs_at_once_ask_once_and_share_one_limit(fake, backend):
    fake.delay_s, fake.polls_needed = 0.05, 10
    found = {}

    def job(name, some):
        found[name] = fake.ask(some, backend=backend, concurrency=2)

    asked = {"a": candidates(6), "b": candidates(10)[2:]}
    jobs = [threading.Thread(target=job, args=row) for row in asked.items()]
    [thread.start() for thread in jobs]
    [thread.join(30) for thread in jobs]
    assert found == {"a": "RW" * 3, "b": "RW" * 4}
    assert set(fake.asked.values()) == {1}
    assert fake.booked == 10
    assert fake.most_busy == 2 * (backend == "openai")


def test_a_killed_job_loses_no_reply_and_leaves_no_lock(fake, tmp_path):
    fake.delay_s = 0.05
    assert kill_after(start_job(fake.settings(concurrency=1), tmp_path, 30), fake.times, 8)
    assert 8 <= len(fake.times) < 30
    # every reply that the job could keep is kept: only the one on its way, or the one
    # that had just come, may be asked for again
    assert fake.ask(candidates(30)) == "RW" * 15
    assert 30 <= fake.asked.total() <= 32


def test_the_key_is_nowhere(fake, tmp_path, caplog):
    """A server that repeats the key in errors, headers and replies; the loudest log level."""
    caplog.set_level(0)
    for library in ("openai", "httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(0)
    echo = f"Incorrect API key provided: {KEY}."
    fake.next_replies = [error(500, KEY, KEY, **{"X-Request-Id": KEY, "Set-Cookie": KEY})]
    fake.replies["fact 0"] = completion(f"My key is Bearer {KEY}")
    fake.replies["wrong 1"] = completion(None, refusal=KEY)
    fake.replies["fact 2"] = Response(f"<p>{KEY}</p>", content_type="text/html")
    fake.replies["wrong 3"] = error(400, "content_filter", echo)
    assert fake.ask(candidates(5), retries=1) == "????R"
    fake.replies["fact 0"] = error(401, "invalid_api_key", echo, **{"X-Echo": KEY})
    with pytest.raises(JudgeError, match=r"Incorrect API key provided: \[key\]") as raised:
        fake.ask(candidates(5), model="judge-2")
    assert {"queue.csv", "spending.csv"} <= {path.name for path in tmp_path.iterdir()}
    said = [caplog.text, "".join(traceback.format_exception(raised.value))]
    assert not [text for text in [*said, *map(str, fake.written())] if "SECRET" in text]


def test_a_missing_library_is_named(fake, monkeypatch):
    for name in [*sys.modules]:
        if name.startswith(("persistcal.judge.", "persistcal.server.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Exception, match="needs the package openai: pip install") as raised:
        fake.ask(candidates(1))
    assert type(raised.value).__name__ == "JudgeError"


# Ceilings ------------------------------------------------------------------------------


def test_ceilings_hold_for_the_study_and_refuse_before_anything_is_sent(fake):
    some = candidates(10)
    fake.ask(some[:6], max_requests=9)
    says = r"Judging needs 4 more requests .*judge.max_requests 9; raise it to 10"
    with pytest.raises(JudgeError, match=says):
        fake.ask(some, max_requests=9)
    with pytest.raises(JudgeError, match=r"above judge\.max_cost 0\.001; raise it to 0\.02 or"):
        fake.ask(some, max_cost=0.001)
    with pytest.raises(JudgeError, match=r"above judge\.max_cost nan"):
        fake.ask(some, max_cost=float("nan"))
    assert fake.asked.total() == 6
    assert fake.ask(some, max_requests=10) == "RW" * 5


def test_a_judge_without_a_bill_needs_no_money(fake):
    fake.ask(candidates(2), price_input=0, price_output=0, max_cost=0)
    assert fake.spent == (2, 0)


@BOTH
def test_a_judge_that_never_gives_a_label_is_stopped_early(fake, backend):
    some = candidates(60)
    fake.replies = dict.fromkeys((c.answer for c in some), completion("Sure! Let me think"))
    with pytest.raises(JudgeError, match=r"None of the judge's first [26]0 replies is a label"):
        fake.ask(some, backend=backend)
    assert fake.asked.total() < 40 or backend == "openai_batch"
    assert fake.kept == 0
    fake.replies = {}
    assert fake.ask(some, backend=backend) == "RW" * 30


# A person --------------------------------------------------------------------------------


def test_refusals_wait_for_a_person_whose_label_wins(fake):
    fake.replies["fact 0"] = completion(None, refusal="I cannot help with that.")
    fake.replies["wrong 1"] = error(400, "content_filter")
    fake.replies["fact 2"] = completion("It is =CORRECT, I think")
    fake.replies["wrong 3"] = completion("INCORR", finish_reason="length")
    fake.replies["fact 4"] = completion("", finish_reason="content_filter")
    some = candidates(6)
    assert fake.ask(some) == "?" * 5 + "W"
    reasons = {row["answer"][-1]: row["reason"] for row in fake.waiting}
    assert {i for i, reason in reasons.items() if reason == "refusal"} == {"0", "1", "4"}
    assert {i for i, reason in reasons.items() if reason == "malformed"} == {"2", "3"}
    fake.ask(some)  # neither asked again nor queued again
    assert len(fake.waiting) == 5
    assert fake.asked.total() == 6

    fake.fill_in(fact_0="Correct", wrong_1="not attempted")
    expected = "rn???W"
    assert fake.ask(some) == expected
    # a person's label also holds for another judge, which is not asked
    assert fake.ask(some[:2], model="judge-2") == expected[:2]
    assert fake.asked.total() == 6
    # and what a job appends leaves it as it is
    fake.replies["wrong 7"] = completion("?")
    assert fake.ask(candidates(8)[6:]) == "R?"
    assert fake.ask(some) == expected


def test_a_label_reruns_the_jobs_that_it_concerns_and_no_other(fake, tmp_path):
    fake.replies = {f"fact {i}": completion("?") for i in (0, 2, 4)}
    some, queue = candidates(6), str(tmp_path / "queue.csv")

    def digests(stop=False):
        noted = (str(tmp_path / f"{job}.csv") for job in "abc")
        return [human_labels_digest(queue, path, stop=stop) for path in noted]

    assert digests() == digests(stop=True) == ["", "", ""]
    fake.ask(some[:2], job="a")
    fake.ask(some[:4], job="b")
    assert digests() == ["", "", ""]
    went_on = digests(stop=True)  # without a label, where they now have to stop
    assert list(map(bool, went_on)) == [True, True, False]
    fake.fill_in(fact_2="correct")
    assert [bool(digest) for digest in digests()] == [False, True, False]
    # running the job again leaves its digest: the parameter that Snakemake has recorded
    before = digests()
    assert fake.ask(some[:4], job="b")[2] == "r"
    # a job that finds the label there from its first run on has nothing to catch up with
    fake.ask(some[2:], job="c")
    assert digests() == before
    fake.fill_in(fact_2="incorrect")
    assert digests()[0] == ""
    assert digests()[1] not in ("", before[1])
    assert digests()[2] != ""
    fake.fill_in(fact_2="Correct.")  # the same, said otherwise
    assert digests()[2] == ""
    fake.fill_in(fact_2="")
    assert [bool(digest) for digest in digests()] == [False, False, True]
    fake.fill_in(fact_0="correct")
    assert digests()[0] == digests(stop=True)[0] not in ("", went_on[0])
    fake.fill_in(fact_0="yes")  # no label, so the jobs that read it run and say so
    assert all(digests())
    with pytest.raises(SheetError, match="has the label 'yes'"):
        fake.ask(some[:2], job="a")


@BOTH
def test_undecided_answers_stop_the_job_and_a_rerun_goes_on(fake, backend):
    fake.replies = {"fact 0": completion("?"), "wrong 1": completion(None, refusal="no")}
    some = candidates(5)
    stop = {"undecided": "stop", "backend": backend}
    for _ in range(2):
        with pytest.raises(JudgeError, match=r"^2 answers wait for a person: .*queue\.csv"):
            fake.ask(some, **stop)
    assert fake.asked.total() == fake.booked == 5
    fake.fill_in(fact_0="correct")
    with pytest.raises(JudgeError, match=r"^1 answer waits"):
        fake.ask(some, **stop)
    fake.fill_in(wrong_1="not_attempted")
    assert fake.ask(some, **stop) == "rnRWR"
    assert fake.asked.total() == 5


# All answers to a question in one request --------------------------------------------------


@BOTH
def test_one_request_asks_about_all_answers_to_a_question(fake, backend):
    some = answers_to(0, "fact 0", "b", "c") + answers_to(1, "fact 1") + answers_to(2, "d", "e")
    expected = "RWWRWW"
    assert together(fake, some, backend=backend) == expected
    assert fake.asked == {"fact 0|b|c": 1, "fact 1": 1, "d|e": 1}
    assert fake.booked == 3
    # kept for both backends; and a checkpoint with the same answers is the same request
    for other in ("openai", "openai_batch"):
        assert together(fake, some, backend=other) == expected
    assert fake.asked.total() == 3
    # another checkpoint's answers are judged anew, also one that was judged before
    assert together(fake, answers_to(0, "b", "fact 0"), backend=backend) == "WR"
    assert fake.asked.total() == 4
    # and one by one has requests of its own
    assert together(fake, some, backend=backend, together=False, prompt=PROMPT) == expected
    assert fake.asked.total() == 10
    # the same answer twice is one line
    twice = answers_to(3, "fact 3", "b", " b ", "fact  3")
    assert together(fake, twice, backend=backend) == "RWWR"
    assert fake.asked["fact 3|b"] == 1 and fake.asked.total() == 11


SEVERAL = {
    "CORRECT\nINCORRECT": "RW",
    "1. CORRECT\n2. INCORRECT\n3. CORRECT\nThat is all.": "RW",
    "CORRECT": "??",
    "1. CORRECT\n2. It is INCORRECT": "R?",
}


@BOTH
def test_lines_that_cannot_be_read_and_refusals_are_of_their_question(fake, backend):
    fake.replies = {f"fact {i}": completion(reply) for i, reply in enumerate(SEVERAL)}
    fake.replies["fact 4"] = completion(None, refusal="No.")
    fake.replies["fact 5"] = {"no": "completion"}
    if backend == "openai":
        fake.replies["fact 6"] = error(400, "content_filter")
    some = [candidate for i in range(8) for candidate in answers_to(i, f"fact {i}", "b")]
    refused = "??" if backend == "openai" else "RW"
    expected = "".join(SEVERAL.values()) + "????" + refused + "RW"
    for _ in range(2):  # kept, so the second time is the same
        assert together(fake, some, backend=backend, retries=0) == expected
    assert set(fake.asked.values()) == {1}
    assert len(fake.waiting) == expected.count("?")


def test_a_person_overrides_single_answers(fake):
    fake.replies["fact 0"] = completion("1. CORRECT\n2. Hm")
    some = answers_to(0, "fact 0", "b")
    assert together(fake, some) == "R?"
    fake.fill_in(b="correct")
    assert together(fake, some, undecided="stop") == "Rr"
    assert fake.asked.total() == 1  # the request is as it was, and so is its reply
    # whoever judges, and with whichever answers it comes
    assert together(fake, answers_to(0, "b", "fact 0")) == "rR"
    assert together(fake, answers_to(0, "b")) == "r"
    assert fake.ask(answers_to(0, "b")) == "r"
    assert fake.asked.total() == 2

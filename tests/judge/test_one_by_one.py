"""A judge behind HTTP with a request per answer: labels, costs, failures and people."""

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

BOTH_BACKENDS = pytest.mark.parametrize("backend", ["openai", "openai_batch"])


def ask_together(fake, answers, **changes):
    return fake.ask(answers, **{"together": True, "prompt": TOGETHER, **changes})


def answers_to(question, *answers):
    return [candidate_of(f"Question {question}?", [f"fact {question}"], a) for a in answers]


def test_each_answer_is_judged_once_and_its_label_is_kept(fake):
    answers = candidates(10)
    assert fake.ask(answers * 2) == "RW" * 10
    assert set(fake.asked.values()) == {1}
    # Another job of the study has one candidate more; judged candidates need no key.
    assert fake.ask([*answers, candidates(11)[-1]]) == "RW" * 5 + "R"
    assert fake.ask(answers, api_key="") == "RW" * 5
    assert fake.asked.total() == 11
    # Another model is asked again.
    fake.ask(answers, model="judge-2")
    assert fake.asked.total() == 21


def test_kept_replies_are_read_again_after_a_change_of_the_labels(fake):
    answers = candidates(2)
    fake.replies = {
        answer.answer: completion(letter) for answer, letter in zip(answers, "YX", strict=True)
    }
    assert fake.ask(answers) == "??"
    assert fake.ask(answers, labels={"Y": "correct", "x": "incorrect"}) == "RW"
    assert fake.asked.total() == 2


def test_a_missing_key_and_a_missing_reference_are_refused(fake):
    with pytest.raises(JudgeError, match="environment variable JUDGE_KEY is empty"):
        fake.ask(candidates(1), api_key=" ")
    with pytest.raises(JudgeError, match="has no reference answer"):
        fake.ask([candidate_of("Q?", [], "a")])


def test_after_a_failure_running_requests_are_kept_and_nothing_is_repeated(fake):
    fake.replies["fact 0"] = error(429, **{"Retry-After": "60"})
    fake.replies["wrong 1"] = lambda request: time.sleep(0.2) or error(401)
    reply = as_json(completion("CORRECT"))
    fake.replies["fact 2"] = lambda request: time.sleep(0.4) or reply
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
def test_a_permanent_failure_stops_the_job_and_labels_are_kept(fake, reply, tries):
    answers = candidates(3)
    fake.ask(answers[:2])
    spent_before = fake.spent
    assert spent_before[0] == 2 and spent_before[1] > 0
    fake.replies["fact 2"] = reply
    with pytest.raises(JudgeError, match=r"server at .* failed .* Labels so far are kept"):
        fake.ask(answers)
    assert fake.asked == {"fact 0": 1, "wrong 1": 1, "fact 2": tries}
    # The first two answers have the same length, so a third costs their mean.
    assert fake.spent == pytest.approx([n * (2 + tries) / 2 for n in spent_before])
    del fake.replies["fact 2"]
    assert fake.ask(answers) == "RWR"


@BOTH_BACKENDS
def test_two_jobs_at_once_judge_each_answer_once_and_share_a_limit(fake, backend):
    fake.delay_s, fake.polls_needed = 0.05, 10
    labels = {}

    def job(name, answers):
        labels[name] = fake.ask(answers, backend=backend, concurrency=2)

    candidates_by_job = {"a": candidates(6), "b": candidates(10)[2:]}
    jobs = [threading.Thread(target=job, args=row) for row in candidates_by_job.items()]
    [thread.start() for thread in jobs]
    [thread.join(30) for thread in jobs]
    assert labels == {"a": "RW" * 3, "b": "RW" * 4}
    assert set(fake.asked.values()) == {1}
    assert fake.booked == 10
    assert fake.most_busy == 2 * (backend == "openai")


def test_a_killed_job_loses_no_reply_and_leaves_no_lock(fake, tmp_path):
    fake.delay_s = 0.05
    assert kill_after(start_job(fake.settings(concurrency=1), tmp_path, 30), fake.times, 8)
    assert 8 <= len(fake.times) < 30
    # All replies are kept except for the running request and the reply that had just
    # arrived, which can be requested again.
    assert fake.ask(candidates(30)) == "RW" * 15
    assert 30 <= fake.asked.total() <= 32


def test_the_key_is_in_no_file_log_or_error(fake, tmp_path, caplog):
    """The server repeats the key in errors, headers and replies; the log has all levels."""
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
    with pytest.raises(JudgeError, match=r"Incorrect API key provided: \[key\]") as error_info:
        fake.ask(candidates(5), model="judge-2")
    assert {"queue.csv", "spending.csv"} <= {path.name for path in tmp_path.iterdir()}
    texts = [caplog.text, "".join(traceback.format_exception(error_info.value))]
    assert not [text for text in [*texts, *map(str, fake.written())] if "SECRET" in text]


def test_a_missing_package_is_named(fake, monkeypatch):
    for name in [*sys.modules]:
        if name.startswith(("persistcal.judge.", "persistcal.server.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Exception, match="needs the package openai: pip install") as error_info:
        fake.ask(candidates(1))
    assert type(error_info.value).__name__ == "JudgeError"


# Ceilings


def test_ceilings_are_for_the_whole_study_and_are_checked_before_any_request(fake):
    answers = candidates(10)
    fake.ask(answers[:6], max_requests=9)
    message = r"Judging needs 4 more requests .*judge.max_requests 9; raise it to 10"
    with pytest.raises(JudgeError, match=message):
        fake.ask(answers, max_requests=9)
    with pytest.raises(JudgeError, match=r"above judge\.max_cost 0\.001; raise it to 0\.02 or"):
        fake.ask(answers, max_cost=0.001)
    with pytest.raises(JudgeError, match=r"above judge\.max_cost nan"):
        fake.ask(answers, max_cost=float("nan"))
    assert fake.asked.total() == 6
    assert fake.ask(answers, max_requests=10) == "RW" * 5


def test_a_judge_without_costs_needs_no_budget(fake):
    fake.ask(candidates(2), price_input=0, price_output=0, max_cost=0)
    assert fake.spent == (2, 0)


@BOTH_BACKENDS
def test_a_judge_that_never_gives_a_label_is_stopped_early(fake, backend):
    answers = candidates(60)
    fake.replies = dict.fromkeys((c.answer for c in answers), completion("Sure! Let me think"))
    with pytest.raises(JudgeError, match=r"None of the judge's first [26]0 replies is a label"):
        fake.ask(answers, backend=backend)
    assert fake.asked.total() < 40 or backend == "openai_batch"
    assert fake.kept == 0
    fake.replies = {}
    assert fake.ask(answers, backend=backend) == "RW" * 30


def test_the_label_is_that_of_the_choice_with_index_0(fake):
    other = {**completion("INCORRECT")["choices"][0], "index": 1}
    reply = completion("CORRECT")
    fake.replies["wrong 1"] = {**reply, "choices": [other, *reply["choices"]]}
    assert fake.ask(candidates(2)) == "RR"


# People


def test_refusals_wait_for_a_person_and_the_persons_label_is_used(fake):
    fake.replies["fact 0"] = completion(None, refusal="I cannot help with that.")
    fake.replies["wrong 1"] = error(400, "content_filter")
    fake.replies["fact 2"] = completion("It is =CORRECT, I think")
    fake.replies["wrong 3"] = completion("INCORR", finish_reason="length")
    fake.replies["fact 4"] = completion("", finish_reason="content_filter")
    answers = candidates(6)
    assert fake.ask(answers) == "?" * 5 + "W"
    reasons = {row["answer"][-1]: row["reason"] for row in fake.waiting}
    assert {i for i, reason in reasons.items() if reason == "refusal"} == {"0", "1", "4"}
    assert {i for i, reason in reasons.items() if reason == "malformed"} == {"2", "3"}
    fake.ask(answers)  # neither judged nor queued again
    assert len(fake.waiting) == 5
    assert fake.asked.total() == 6

    fake.fill_in(fact_0="Correct", wrong_1="not attempted")
    expected = "rn???W"
    assert fake.ask(answers) == expected
    # A person's label is also used for another judge, which is not asked.
    assert fake.ask(answers[:2], model="judge-2") == expected[:2]
    assert fake.asked.total() == 6
    # Rows that a job appends do not change the label.
    fake.replies["wrong 7"] = completion("?")
    assert fake.ask(candidates(8)[6:]) == "R?"
    assert fake.ask(answers) == expected


def test_a_persons_label_reruns_only_the_jobs_that_use_it(fake, tmp_path):
    fake.replies = {f"fact {i}": completion("?") for i in (0, 2, 4)}
    answers, queue = candidates(6), str(tmp_path / "queue.csv")

    def digests(stop=False):
        noted = (str(tmp_path / f"{job}.csv") for job in "abc")
        return [human_labels_digest(queue, path, stop=stop) for path in noted]

    assert digests() == digests(stop=True) == ["", "", ""]
    fake.ask(answers[:2], job="a")
    fake.ask(answers[:4], job="b")
    assert digests() == ["", "", ""]
    stopped = digests(stop=True)  # answers without a label now stop the job
    assert list(map(bool, stopped)) == [True, True, False]
    fake.fill_in(fact_2="correct")
    assert [bool(digest) for digest in digests()] == [False, True, False]
    # Running the job again does not change its digest, which Snakemake has recorded.
    recorded = digests()
    assert fake.ask(answers[:4], job="b")[2] == "r"
    # A job that finds the label in its first run has no need to run again.
    fake.ask(answers[2:], job="c")
    assert digests() == recorded
    fake.fill_in(fact_2="incorrect")
    assert digests()[0] == ""
    assert digests()[1] not in ("", recorded[1])
    assert digests()[2] != ""
    fake.fill_in(fact_2="Correct.")  # the same label in another spelling
    assert digests()[2] == ""
    fake.fill_in(fact_2="")
    assert [bool(digest) for digest in digests()] == [False, False, True]
    fake.fill_in(fact_0="correct")
    assert digests()[0] == digests(stop=True)[0] not in ("", stopped[0])
    fake.fill_in(fact_0="yes")  # not a label: all jobs that read it run and refuse it
    assert all(digests())
    with pytest.raises(SheetError, match="has the label 'yes'"):
        fake.ask(answers[:2], job="a")


@BOTH_BACKENDS
def test_undecided_answers_stop_the_job_until_a_person_labels_them(fake, backend):
    fake.replies = {"fact 0": completion("?"), "wrong 1": completion(None, refusal="no")}
    answers = candidates(5)
    stop = {"undecided": "stop", "backend": backend}
    for _ in range(2):
        with pytest.raises(JudgeError, match=r"^2 answers wait for a person: .*queue\.csv"):
            fake.ask(answers, **stop)
    assert fake.asked.total() == fake.booked == 5
    fake.fill_in(fact_0="correct")
    with pytest.raises(JudgeError, match=r"^1 answer waits"):
        fake.ask(answers, **stop)
    fake.fill_in(wrong_1="not_attempted")
    assert fake.ask(answers, **stop) == "rnRWR"
    assert fake.asked.total() == 5


# All answers to a question in one request


@BOTH_BACKENDS
def test_one_request_asks_about_all_answers_to_a_question(fake, backend):
    answers = (
        answers_to(0, "fact 0", "b", "c") + answers_to(1, "fact 1") + answers_to(2, "d", "e")
    )
    expected = "RWWRWW"

    assert ask_together(fake, answers, backend=backend) == expected
    assert fake.asked == {"fact 0|b|c": 1, "fact 1": 1, "d|e": 1}
    assert fake.booked == 3
    # Both backends read the same replies, and so does a checkpoint with the same answers.
    for other_backend in ("openai", "openai_batch"):
        assert ask_together(fake, answers, backend=other_backend) == expected
    assert fake.asked.total() == 3
    # Another checkpoint's answers are judged again, also an answer that has a label.
    assert ask_together(fake, answers_to(0, "b", "fact 0"), backend=backend) == "WR"
    assert fake.asked.total() == 4
    # Single answers have requests of another kind.
    assert (
        ask_together(fake, answers, backend=backend, together=False, prompt=PROMPT) == expected
    )
    assert fake.asked.total() == 10

    # A repeated answer is one line.
    repeated = answers_to(3, "fact 3", "b", " b ", "fact  3")
    assert ask_together(fake, repeated, backend=backend) == "RWWR"
    assert fake.asked["fact 3|b"] == 1 and fake.asked.total() == 11


REPLIES = {
    "CORRECT\nINCORRECT": "RW",
    "1. CORRECT\n2. INCORRECT\n3. CORRECT\nThat is all.": "RW",
    "CORRECT": "??",
    "1. CORRECT\n2. It is INCORRECT": "R?",
}


@BOTH_BACKENDS
def test_unclear_lines_and_refusals_affect_only_their_question(fake, backend):
    fake.replies = {f"fact {i}": completion(reply) for i, reply in enumerate(REPLIES)}
    fake.replies["fact 4"] = completion(None, refusal="No.")
    fake.replies["fact 5"] = {"no": "completion"}
    if backend == "openai":
        fake.replies["fact 6"] = error(400, "content_filter")
    answers = [candidate for i in range(8) for candidate in answers_to(i, f"fact {i}", "b")]
    refused = "??" if backend == "openai" else "RW"
    expected = "".join(REPLIES.values()) + "????" + refused + "RW"
    for _ in range(2):  # the second time from the kept replies
        assert ask_together(fake, answers, backend=backend, retries=0) == expected
    assert set(fake.asked.values()) == {1}
    assert len(fake.waiting) == expected.count("?")


def test_a_person_can_label_single_answers_of_a_request(fake):
    fake.replies["fact 0"] = completion("1. CORRECT\n2. Hm")
    answers = answers_to(0, "fact 0", "b")
    assert ask_together(fake, answers) == "R?"
    fake.fill_in(b="correct")
    assert ask_together(fake, answers, undecided="stop") == "Rr"
    assert fake.asked.total() == 1  # the request and its reply have not changed
    # The label is used for any judge and next to any other answers.
    assert ask_together(fake, answers_to(0, "b", "fact 0")) == "rR"
    assert ask_together(fake, answers_to(0, "b")) == "r"
    assert fake.ask(answers_to(0, "b")) == "r"
    assert fake.asked.total() == 2

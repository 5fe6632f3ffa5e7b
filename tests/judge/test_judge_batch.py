"""The judge in batches, against a server that misbehaves."""

import json
import threading

import pytest
from judge_server import (
    KEY,
    FakeJudge,
    as_json,
    candidates,
    completion,
    cut,
    error,
)
from werkzeug import Response

from persistcal.judge import batch
from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import Ledger
from persistcal.judge.run import judge_candidates

RIGHT, WRONG = ("correct", "judge-1"), ("incorrect", "judge-1")
WAITS = ("not_attempted", "queue")


@pytest.fixture
def fake():
    with FakeJudge() as judge:
        yield judge


def ask(fake, folder, some, **changes):
    settings = fake.settings(**{"backend": "openai_batch", **changes})
    return judge_candidates(some, folder, settings, noted=folder / "noted.csv", api_key=KEY)


def n_sent(folder):
    return Ledger(folder / "spending.csv").total()[0]


def failed_line(line, status, code):
    body = {"error": {"message": f"it is {code}", "code": code}}
    return FakeJudge.line(line["custom_id"], body, status)


def expired_line(line):
    broken = {"code": "batch_expired", "message": "out of time"}
    return {"custom_id": line["custom_id"], "response": None, "error": broken}


def test_one_batch_for_all_that_is_new(fake, tmp_path):
    fake.polls_needed = 2
    assert ask(fake, tmp_path, candidates(10) * 2) == [RIGHT, WRONG] * 10
    assert len(fake.batches) == 1
    lines = [json.loads(line) for line in fake.uploads[0]]
    assert len({line["custom_id"] for line in lines}) == 10
    assert {line["url"] for line in lines} == {"/v1/chat/completions"}
    assert ask(fake, tmp_path, candidates(12)) == [RIGHT, WRONG] * 6
    assert len(fake.batches) == 2
    assert set(fake.asked.values()) == {1}
    assert not list((tmp_path / "batches").iterdir())
    assert n_sent(tmp_path) == 12
    # the request-by-request backend shares the cache
    assert ask(fake, tmp_path, candidates(12), backend="openai") == [RIGHT, WRONG] * 6
    assert fake.asked.total() == 12


def test_large_sets_are_split(fake, tmp_path):
    assert ask(fake, tmp_path, candidates(10), batch_requests=4) == [RIGHT, WRONG] * 5
    assert [len(lines) for lines in fake.uploads] == [4, 4, 2]


def test_results_in_any_order_with_strangers_duplicates_and_rubbish(fake, tmp_path):
    def finish(batch):
        lines = fake.lines(batch)
        stranger = FakeJudge.line("0" * 32, completion("CORRECT"))
        other = FakeJudge.line(lines[1]["custom_id"], completion("CORRECT"))  # was INCORRECT
        odd = ['{"custom_id": "cut of', "[]", '{"custom_id": ["x"]}', "", '{"response": 3}']
        return [*lines[::-1], lines[0], stranger, other, *odd]

    fake.finishers = [finish]
    assert ask(fake, tmp_path, candidates(6)) == [RIGHT, WAITS, *[RIGHT, WRONG] * 2]
    assert fake.asked.total() == 6
    assert "two replies" in (tmp_path / "queue.csv").read_text()


def test_what_failed_in_passing_is_asked_in_the_next_batch(fake, tmp_path):
    def finish(batch):
        lines = fake.lines(batch)
        failed = [
            failed_line(lines[0], 500, "server_error"),
            failed_line(lines[1], 429, "busy"),
        ]
        return lines[2:], failed, "completed"

    fake.finishers = [finish]
    assert ask(fake, tmp_path, candidates(6)) == [RIGHT, WRONG] * 3
    assert fake.asked == {"fact 0": 2, "wrong 1": 2, "fact 2": 1, "wrong 3": 1, "fact 4": 1} | {
        "wrong 5": 1
    }
    assert n_sent(tmp_path) == 6


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_a_batch_that_ends_early_keeps_what_it_has(fake, tmp_path, status):
    def finish(batch):
        lines = fake.lines(batch)
        return lines[:2], [expired_line(line) for line in lines[2:]], status

    fake.finishers = [finish]
    assert ask(fake, tmp_path, candidates(5)) == [RIGHT, WRONG, RIGHT, WRONG, RIGHT]
    assert [len(lines) for lines in fake.uploads] == [5, 3]


def test_batches_that_always_expire_stop(fake, tmp_path):
    fake.finishers = [lambda batch: ([], [], "expired")] * 9
    with pytest.raises(JudgeError, match="2 requests have no reply after 3 rounds"):
        ask(fake, tmp_path, candidates(2))
    assert len(fake.batches) == 3
    assert n_sent(tmp_path) == 0


def test_a_refused_request_stops_after_the_good_ones_are_kept(fake, tmp_path):
    def finish(batch):
        lines = fake.lines(batch)
        return lines[1:], [failed_line(lines[0], 400, "unknown_model")], "completed"

    fake.finishers = [finish]
    with pytest.raises(JudgeError, match="it is unknown_model"):
        ask(fake, tmp_path, candidates(3))
    assert ask(fake, tmp_path, candidates(3)) == [RIGHT, WRONG, RIGHT]
    assert fake.asked == {"fact 0": 2, "wrong 1": 1, "fact 2": 1}


def test_a_failed_batch_says_why(fake, tmp_path):
    def finish(batch):
        batch["errors"] = {"object": "list", "data": [{"message": f"quota of {KEY} spent"}]}
        return [], [], "failed"

    fake.finishers = [finish]
    with pytest.raises(JudgeError, match=r"quota of \[key\] spent"):
        ask(fake, tmp_path, candidates(3))
    assert n_sent(tmp_path) == 0
    assert ask(fake, tmp_path, candidates(3)) == [RIGHT, WRONG, RIGHT]


def test_refusals_and_malformed_replies_wait_for_a_person(fake, tmp_path):
    fake.replies["fact 0"] = completion(None, refusal="no")
    fake.replies["wrong 1"] = completion(f"{KEY} is CORRECT")
    fake.replies["fact 2"] = {"object": "no completion"}

    def finish(batch):
        lines = fake.lines(batch)
        return lines[:3], [failed_line(lines[3], 400, "content_filter")], "completed"

    fake.finishers = [finish]
    assert ask(fake, tmp_path, candidates(4)) == [WAITS] * 4
    assert ask(fake, tmp_path, candidates(4)) == [WAITS] * 4
    assert fake.asked.total() == 4
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if "SECRET" in text]


def test_a_judge_that_never_gives_a_label_is_not_kept(fake, tmp_path):
    some = candidates(20)
    fake.replies = dict.fromkeys((c.answer for c in some), completion("Hm"))
    with pytest.raises(JudgeError, match="None of the judge's first 20 replies"):
        ask(fake, tmp_path, some)
    fake.replies = {}
    assert ask(fake, tmp_path, some) == [RIGHT, WRONG] * 10


def test_a_submitted_batch_is_resumed(fake, tmp_path, monkeypatch):
    """The job ends while its batch runs; the next one waits for that batch."""
    fake.polls_needed = 10**6
    monkeypatch.setattr(batch, "LONGEST_WAIT_S", 0.05)
    with pytest.raises(JudgeError, match="run again to wait on"):
        ask(fake, tmp_path, candidates(6))
    monkeypatch.undo()
    fake.polls_needed = 0
    # more candidates, some of them in the batch that runs: only the others are submitted
    assert ask(fake, tmp_path, candidates(8)[2:]) == [RIGHT, WRONG] * 3
    assert [len(lines) for lines in fake.uploads] == [6, 2]
    assert ask(fake, tmp_path, candidates(8)) == [RIGHT, WRONG] * 4
    assert set(fake.asked.values()) == {1}
    assert n_sent(tmp_path) == 8


@pytest.mark.parametrize("reached", [True, False])
def test_a_submission_cut_short_is_found_or_repeated(fake, tmp_path, reached):
    """The job died after it said what it would submit, before or after it did."""
    fake.next_batch_replies = [error(400, "unlucky")]
    with pytest.raises(JudgeError, match="400"):
        ask(fake, tmp_path, candidates(4))
    assert len(fake.batches) == 1  # the server did make it
    if not reached:
        fake.batches.clear()
    assert ask(fake, tmp_path, candidates(4)) == [RIGHT, WRONG] * 2
    assert len(fake.batches) == 1
    assert set(fake.asked.values()) == {1}
    assert n_sent(tmp_path) == 4


def test_a_batch_whose_reply_was_lost_is_not_submitted_twice(fake, tmp_path):
    fake.next_batch_replies = [cut]
    assert ask(fake, tmp_path, candidates(4)) == [RIGHT, WRONG] * 2
    assert len(fake.batches) == 1


def test_polling_survives_storms_and_wrong_json(fake, tmp_path):
    fake.next_polls = [
        error(429, **{"Retry-After": "0"}),
        error(503),
        cut,
        Response("{", content_type="application/json"),
        Response("<html>", content_type="text/html"),
        as_json({"object": "batch"}),
    ]
    assert ask(fake, tmp_path, candidates(2), retries=10) == [RIGHT, WRONG]


def test_two_jobs_at_once_share_batches(fake, tmp_path):
    fake.polls_needed = 10
    found = {}

    def job(name, some):
        found[name] = ask(fake, tmp_path, some)

    jobs = [
        threading.Thread(target=job, args=("a", candidates(6))),
        threading.Thread(target=job, args=("b", candidates(10)[2:])),
    ]
    [thread.start() for thread in jobs]
    [thread.join(30) for thread in jobs]
    assert found == {"a": [RIGHT, WRONG] * 3, "b": [RIGHT, WRONG] * 4}
    assert set(fake.asked.values()) == {1}
    assert n_sent(tmp_path) == 10


def test_the_ceiling_counts_batches_on_their_way(fake, tmp_path):
    with pytest.raises(JudgeError, match="max_requests 5"):
        ask(fake, tmp_path, candidates(6), max_requests=5)
    assert not fake.batches

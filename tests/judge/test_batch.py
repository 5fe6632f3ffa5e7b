"""The judge in batches, with a server that has faults."""

import json

import pytest
from judge_server import KEY, FakeJudge, as_json, candidates, completion, cut, error, response

from persistcal.judge import asking
from persistcal.judge.messages import requests_about
from persistcal.questions.labels import JudgeError
from persistcal.server import client
from persistcal.server.spending import estimate
from persistcal.store.replies import BatchRecord


@pytest.fixture
def fake(fake):
    fake.changed = {"backend": "openai_batch"}
    return fake


def planned_cost(fake, n):
    bodies = [body for body, _ in requests_about(candidates(n), fake.settings()).values()]
    return estimate(bodies, price_input=2.5, price_output=15).cost


def failed_line(line, status, code):
    body = {"error": {"message": f"it is {code}", "code": code}}
    return FakeJudge.line(line["custom_id"], body, status)


def expired_line(line):
    broken = {"code": "batch_expired", "message": "out of time"}
    return {"custom_id": line["custom_id"], "response": None, "error": broken}


def test_one_batch_asks_about_all_new_answers(fake, tmp_path):
    fake.polls_needed = 2
    with pytest.raises(JudgeError, match="max_requests 9"):
        fake.ask(candidates(10), max_requests=9)
    assert not fake.batches
    assert fake.ask(candidates(10) * 2) == "RW" * 10
    assert len(fake.batches) == 1
    lines = [json.loads(line) for line in fake.uploads[0]]
    assert len({line["custom_id"] for line in lines}) == 10
    assert {line["url"] for line in lines} == {"/v1/chat/completions"}
    assert fake.ask(candidates(12)) == "RW" * 6
    assert len(fake.batches) == 2
    assert set(fake.asked.values()) == {1}
    assert not list((tmp_path / "batches").iterdir())
    assert fake.booked == 12
    # The backend `openai` reads the same cache.
    assert fake.ask(candidates(12), backend="openai") == "RW" * 6
    assert fake.asked.total() == 12


def test_the_end_point_for_responses_labels_in_batches_and_one_by_one(fake):
    settings = {"endpoint": "responses", "request": {"max_output_tokens": 16}}
    refused = response("no")
    refused["output"][1]["content"] = [{"type": "refusal", "refusal": "I cannot"}]
    fake.replies = {"wrong 3": response("CORRECT", "content_filter"), "fact 4": refused}
    for backend in ("openai_batch", "openai"):
        asked = candidates(3 + 2 * (backend == "openai"))
        labels = fake.ask(asked, backend=backend, **settings)
        assert labels == "RWR??"[: len(asked)]
    assert [json.loads(line)["url"] for line in fake.uploads[0]] == 3 * ["/v1/responses"]
    assert {row["reason"] for row in fake.waiting} == {"refusal"}


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_batches_is_refused_with_the_line_to_change(fake, tmp_path, status):
    fake.server.clear()
    fake.server.expect_request("/v1/files").respond_with_data("no such path", status=status)
    with pytest.raises(JudgeError, match=r"takes no batches .*`judge: {backend: openai}`"):
        fake.ask(candidates(3), retries=0)
    assert fake.spent == (0, pytest.approx(0))
    assert not list((tmp_path / "batches").iterdir())


def test_many_requests_are_split_into_batches(fake):
    assert fake.ask(candidates(10), batch_requests=4) == "RW" * 5
    assert [len(lines) for lines in fake.uploads] == [4, 4, 2]


@pytest.mark.parametrize("text", ["yes", "да", "はい", "👍", '"\\\n'])
def test_uploads_of_every_script_are_within_the_limit_of_servers(tmp_path, monkeypatch, text):
    assert asking.LARGEST_UPLOAD < 200_000_000
    bodies = {str(i): {"messages": [], "asked": text * 16} for i in range(6)}

    def uploads():
        parts = asking._parts(bodies, 100)
        made = [[asking._line(*item) for item in part.items()] for part in parts]
        return [len(BatchRecord.create(tmp_path, lines, 0).upload()) for lines in made]

    [whole] = uploads()
    monkeypatch.setattr(asking, "LARGEST_UPLOAD", whole // 3)
    assert uploads() == [whole // 3] * 3
    monkeypatch.setattr(asking, "LARGEST_UPLOAD", whole // 3 - 1)
    assert uploads() == [whole // 6] * 6


def test_results_of_a_batch_can_be_longer_than_a_reply(fake, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_REPLY", 1000)
    fake.delay_s = 0.2  # five delays, each below the time limit
    assert fake.ask(candidates(20), timeout_s=0.7) == "RW" * 10
    assert len(fake.files["batch-0-output"]) > 1000
    fake.delay_s = 0
    monkeypatch.setattr(client, "LARGEST_RESULTS", 1000)
    with pytest.raises(JudgeError, match="more than 1000 bytes"):
        fake.ask(candidates(20), model="judge-2", retries=0)


def test_unordered_unknown_repeated_and_damaged_results_are_sorted_out(fake, tmp_path):
    def finish(lines):
        stranger = FakeJudge.line("0" * 32, completion("CORRECT"))
        duplicate = FakeJudge.line(
            lines[1]["custom_id"], completion("CORRECT")
        )  # was INCORRECT
        odd = ['{"custom_id": "cut of', "[]", '{"custom_id": ["x"]}', "", '{"response": 3}']
        return [*lines[::-1], lines[0], stranger, duplicate, *odd]

    fake.finishers = [finish]
    assert fake.ask(candidates(6)) == "R?RWRW"
    assert fake.asked.total() == 6
    assert "two replies" in (tmp_path / "queue.csv").read_text()


def test_failed_and_expired_requests_are_repeated_in_the_next_batch(fake):
    def first(lines):
        failed = [failed_line(lines[0], 500, "odd"), failed_line(lines[1], 429, "busy")]
        return lines[3:], [*failed, expired_line(lines[2])], "expired"

    fake.finishers = [first, lambda ls: (ls[1:], [expired_line(ls[0])], "cancelled")]
    assert fake.ask(candidates(5)) == "RWRWR"
    assert [len(lines) for lines in fake.uploads] == [5, 3, 1]
    assert fake.booked == 5


@pytest.mark.parametrize("status", ["COMPLETED", "canceled"])
def test_a_mark_at_the_start_other_spellings_and_a_missing_code_cost_no_reply(fake, status):
    def finish(lines):
        lines[1]["response"].pop("status_code")
        return ["\ufeff" + json.dumps(lines[0]), *lines[1:]], [], status

    fake.finishers = [finish]
    assert fake.ask(candidates(4)) == "RWRW"
    assert len(fake.batches) == 1


def test_a_batch_that_the_server_forgot_is_asked_again_once_its_record_is_deleted(
    fake, tmp_path
):
    fake.next_polls = [error(404, "not_found")] * 2
    for _ in range(2):
        with pytest.raises(
            JudgeError, match="delete this file; then its 4 requests"
        ) as refused:
            fake.ask(candidates(4))
    (record,) = (tmp_path / "batches").glob("*.json")
    assert str(record) in str(refused.value)
    record.unlink()
    assert fake.ask(candidates(4)) == "RWRW"


def test_batches_that_always_expire_stop_the_job(fake):
    fake.finishers = [lambda lines: ([], [], "expired")] * 9
    with pytest.raises(JudgeError, match="2 requests have no reply after 3 rounds"):
        fake.ask(candidates(2))
    assert len(fake.batches) == 3
    assert fake.spent == (0, pytest.approx(0))


def test_a_refused_request_stops_the_job_after_other_replies_are_kept(fake):
    fake.finishers = [lambda rows: (rows[1:], [failed_line(rows[0], 400, "odd")], "completed")]
    with pytest.raises(JudgeError, match="it is odd"):
        fake.ask(candidates(3))
    assert fake.ask(candidates(3)) == "RWR"
    assert fake.asked == {"fact 0": 2, "wrong 1": 1, "fact 2": 1}
    assert fake.spent == (3, pytest.approx(planned_cost(fake, 3)))


def test_a_failed_batch_stops_the_job_with_the_servers_reason(fake):
    errors = {"object": "list", "data": [{"message": f"quota of {KEY} spent"}]}
    failed = {"id": "batch-0", "status": "failed", "errors": errors}
    fake.next_polls = [as_json(failed)]
    with pytest.raises(JudgeError, match=r"quota of \[key\] spent"):
        fake.ask(candidates(3))
    assert fake.booked == 0
    assert fake.ask(candidates(3)) == "RWR"


def test_a_new_job_waits_for_the_batch_of_an_interrupted_job(fake, monkeypatch):
    fake.polls_needed = 10**6
    monkeypatch.setattr(asking, "LONGEST_WAIT_S", 0.05)
    with pytest.raises(JudgeError, match="run again to wait on"):
        fake.ask(candidates(6))
    monkeypatch.undo()
    fake.polls_needed = 0
    # Some of these candidates are in the running batch: only the others are submitted.
    assert fake.ask(candidates(8)[2:]) == "RW" * 3
    assert [len(lines) for lines in fake.uploads] == [6, 2]
    assert fake.ask(candidates(8)) == "RW" * 4
    assert set(fake.asked.values()) == {1}
    assert fake.booked == 8


@pytest.mark.parametrize("is_submitted", [True, False])
def test_an_interrupted_submission_is_found_or_repeated(fake, is_submitted):
    """The job ends after it notes its submission, before or after the submission."""
    fake.next_batch_replies = [error(400, "unlucky")]
    with pytest.raises(JudgeError, match="400"):
        fake.ask(candidates(4))
    assert len(fake.batches) == 1  # the server created it
    if not is_submitted:
        fake.batches.clear()
    assert fake.ask(candidates(4)) == "RW" * 2
    assert len(fake.batches) == 1
    assert set(fake.asked.values()) == {1}
    assert fake.booked == 4


@pytest.mark.parametrize(("pages", "submitted"), [(10, 4), (3, 5)])
def test_the_search_for_a_submission_has_a_limit(fake, monkeypatch, pages, submitted):
    monkeypatch.setattr(asking, "SEARCHED_PAGES", pages)
    fake.page = 1
    fake.next_batch_replies = [error(400, "unlucky")]
    with pytest.raises(JudgeError, match="400"):
        fake.ask(candidates(4))
    unrelated = {f"other-{i}": {"id": f"other-{i}", "status": "completed"} for i in range(3)}
    fake.batches |= unrelated  # newer batches of another user
    assert fake.ask(candidates(4)) == "RW" * 2
    assert len(fake.batches) == submitted


def test_a_batch_is_submitted_once_even_if_the_reply_is_lost(fake):
    fake.next_batch_replies = [cut]
    assert fake.ask(candidates(4)) == "RW" * 2
    assert len(fake.batches) == 1

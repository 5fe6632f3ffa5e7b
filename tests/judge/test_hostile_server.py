"""A judge's server with faults: no paid reply is lost, and no odd reply stops a job."""

import errno
import gzip
import itertools
import json
import time

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judge_server import (
    KEY,
    FakeJudge,
    any_json,
    as_json,
    by_hand,
    candidates,
    completion,
    cut,
    cut_in_the_middle,
    error,
)
from werkzeug import Response

from persistcal.judge.asking import read_batch
from persistcal.judge.messages import read_reply, read_results
from persistcal.questions.labels import LABELS, JudgeError
from persistcal.server import client
from persistcal.server.spending import BadReplyError
from persistcal.store.replies import ReplyCache

DEEP = "[" * 100_000
HTML = Response("<html>a proxy's page</html>", content_type="text/html")
CUT_JSON = Response('{"choices": [', content_type="application/json")


@pytest.fixture
def fake(fake):
    fake.changed = {"retries": 1}
    return fake


# Errors that are temporary


def test_requests_are_repeated_after_errors_cut_connections_and_bad_replies(fake):
    fake.next_replies = [
        error(429, "rate_limit_exceeded", **{"Retry-After": "0"}),
        *(error(500), cut, cut_in_the_middle, error(408), error(409), error(503)),
        *(HTML, CUT_JSON, as_json({"no": "choices"})),
    ] * 2
    assert fake.ask(candidates(12), retries=20) == "RW" * 6
    assert set(fake.asked.values()) == {1}
    assert len(fake.times) == fake.booked == 12 + 20  # all requests that were sent


def test_a_request_waits_as_long_as_the_server_demands(fake):
    fake.next_replies = [error(429, **{"Retry-After": "0.3"})]
    assert fake.ask(candidates(1)) == "R"
    assert fake.times[1] - fake.times[0] >= 0.29


def failure(status=429, **headers):
    request = httpx2.Request("GET", "x:")
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = httpx2.Response(status, headers=headers, request=request)
    return client.openai.APIStatusError("", response=answer, body=None)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "-3"}, 0),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after_ms": "soon", "retry_after": "7"}, 7),
        ({"retry_after": "Sun, 06 Nov 1994 08:54:37 GMT"}, 300),  # the clock shows 08:49:37
        ({"retry_after": "Sun, 06 Nov 1994 08:48:37 GMT"}, 0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_waiting_time_is_read_from_the_headers(headers, wait, monkeypatch):
    monkeypatch.setattr(client.time, "time", lambda: 784111777.0)
    assert client.retry_after_s(failure(**headers)) == wait


@pytest.mark.parametrize(
    ("status", "retry_after", "passes"),
    [(status, "", True) for status in (408, 409, 429, 500, 503)]
    + [(status, "", False) for status in (400, 401, 404, 422, 499)]
    + [(429, "600", True), (429, "601", False), (401, "1", False)],
)
def test_some_errors_are_temporary(status, retry_after, passes):
    assert client.is_transient(failure(status, retry_after=retry_after)) == passes


@given(st.text(st.characters(codec="latin-1", exclude_categories=["Cc"])))
@example("1e309")
@example("nan")
@example("-1e400")
@example("Mon, 01 Jan 0001 00:00:00")
@example("Wed, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 32 Jan 99999 00:00:00 GMT")
def test_any_retry_after_header_is_a_time_or_ignored(text):
    api_error = failure(retry_after=text.encode("latin-1"))
    wait = client.retry_after_s(api_error)
    assert wait is None or 0 <= wait < float("inf")
    assert client.is_transient(api_error) == (wait is None or wait <= 600)


# Bad replies
BAD = [
    DEEP,  # deep JSON
    json.dumps(completion("x")).replace('"x"', f"{'[' * 5000}{']' * 5000}"),  # deep inside
    json.dumps(completion("\ud800 CORRECT")),  # a lone surrogate
    json.dumps(completion(None, refusal="\udfff")),  # a lone surrogate in a refusal
    b'{"choices": "\xff\xfe"}',  # no UTF-8
    '{"choices": 1e400}',  # a number too large
    '{"choices": ' + "9" * 10_000 + "}",  # a number too long
    '{"choices": {"0": 1}}',  # choices of another kind
    "[]",  # a list
    '{"choices": [{"message": []}]}',  # a message that is a list
    '{"choices": [{"message": {"content": [{"text": "CORRECT"}]}}]}',  # content in parts
    "",  # nothing
    "<html>no</html>",  # a page
]


def test_a_bad_reply_waits_for_a_person_and_other_replies_are_kept(fake):
    answers = candidates(len(BAD) + 2)
    for candidate, reply in zip(answers, BAD, strict=False):
        bad = Response(reply, content_type="application/json; charset=zlib")
        fake.replies[candidate.answer] = bad
    for _ in range(2):
        assert fake.ask(answers) == "?" * len(BAD) + "WR"
    assert set(fake.asked.values()) == {1, 2}  # replies of another shape are requested twice
    assert (fake.kept, fake.booked) == (len(answers), len(fake.times))


@pytest.mark.parametrize("code", [["content_filter"], "\ud800"], ids=["list", "surrogate"])
def test_an_odd_error_code_stops_with_a_sentence_and_other_replies_are_kept(fake, code):
    fake.ask(candidates(3))
    fake.replies["wrong 3"] = error(400, code, message="so\udcff")
    with pytest.raises(JudgeError, match=r"failed \(Error code: 400 - so\?\)"):
        fake.ask(candidates(4))
    assert (fake.kept, fake.booked) == (3, len(fake.times))


def test_compressed_and_endless_replies_are_refused(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_REPLY", 10_000)
    bomb = gzip.compress(b" " * 10**6)
    fake.replies["fact 0"] = Response(bomb, headers={"Content-Encoding": "gzip"})
    fake.replies["wrong 1"] = lambda request: Response(itertools.repeat(b" " * 1000))
    assert fake.ask(candidates(4)) == "??RW"
    queue = (tmp_path / "queue.csv").read_text()
    assert "compressed" in queue
    assert "more than 10000 bytes" in queue


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_slow_or_missing_reply_has_a_time_limit(fake, start):
    def drip(request):
        with by_hand(request) as connection:
            connection.sendall(start)
            for _ in range(200):
                connection.sendall(b" " if start else b"")
                time.sleep(0.04)
        return Response()

    fake.next_replies = [drip]
    begin = time.monotonic()
    assert fake.ask(candidates(1), timeout_s=0.5, retries=5) == "R"
    assert time.monotonic() - begin < 6  # the whole reply would take eight seconds


# Failures on this side


def test_a_request_that_cannot_be_sent_is_not_counted(fake, tmp_path):
    with pytest.raises(ValueError, match="float"):
        fake.ask(candidates(3), request={"top_p": float("nan")})
    assert (fake.kept, fake.booked) == (0, 0)
    assert not (tmp_path / "queue.csv").exists()


def fail_to_keep(monkeypatch, answer, failures):
    """Let the cache raise each of `failures` once at the reply to `answer`."""
    keep = ReplyCache.put

    def put(self, key, entry):
        if failures and answer in entry["asked"]:
            raise failures.pop()
        keep(self, key, entry)

    monkeypatch.setattr(ReplyCache, "put", put)


def test_a_full_disk_loses_one_reply_and_the_others_are_kept_and_counted(fake, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    fail_to_keep(monkeypatch, "fact 4", [full])
    fake.delay_s = 0.05
    message = r"1 replies of the judge cannot be kept in .* \(No space left on device\); make"
    with pytest.raises(JudgeError, match=message):
        fake.ask(candidates(12), concurrency=6)
    assert 5 <= fake.kept == fake.asked.total() - 1
    assert fake.booked == fake.asked.total()
    assert fake.ask(candidates(12)) == "RW" * 6
    assert fake.asked.total() == 13


def test_a_batch_is_collected_again_after_a_full_disk(fake, monkeypatch):
    fail_to_keep(monkeypatch, "", [OSError("no space left")])
    with pytest.raises(JudgeError, match=r"cannot be kept in .* \(no space left\); make room"):
        fake.ask(candidates(4), backend="openai_batch")
    assert fake.kept == 3
    assert fake.ask(candidates(4), backend="openai_batch") == "RW" * 2
    assert len(fake.batches) == 1
    assert fake.booked == 4


def test_replies_before_the_first_label_are_kept_if_the_server_fails(fake):
    fake.replies = {"fact 0": completion("Hm"), "wrong 1": error(401)}
    with pytest.raises(JudgeError, match="failed"):
        fake.ask(candidates(2), concurrency=1)
    assert (fake.kept, fake.booked) == (1, 2)


def test_replies_before_the_first_label_are_written_with_it(fake):
    kept, reply = [], as_json(completion("INCORRECT"))
    fake.replies = {"fact 0": completion("Hm"), "wrong 1": completion("Hm")}
    fake.replies["wrong 3"] = lambda request: kept.append(fake.kept) or reply
    fake.ask(candidates(4), concurrency=1)
    assert kept == [3]  # two replies that were not written yet, and the first label


def test_an_interrupt_loses_no_reply_of_a_running_request(fake, monkeypatch):
    fake.delay_s = 0.3

    def interrupted(futures):
        while not fake.busy:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fake.ask(candidates(20), concurrency=2)
    assert 1 <= fake.asked.total() == fake.kept == fake.booked < 20


# Batches


def bad_lines(lines):
    keys = [line["custom_id"] for line in lines]
    bodies = [
        ({"error": {"code": ["content_filter"]}}, 400),
        ({"error": {"code": "content_filter"}}, 400),
        (completion(f"\ud800 {KEY} is CORRECT"), 200),
        ("CORRECT", 200),
        ({}, 200),
    ]
    return [
        json.dumps(lines[0]).replace('"status_code": 200', '"status_code": 1e400'),
        *(FakeJudge.line(key, *body) for key, body in zip(keys[1:], bodies, strict=False)),
        *(DEEP, '{"custom_id": {}}'),
    ]


def test_bad_lines_of_a_batch_wait_or_are_refused_and_other_replies_are_kept(fake):
    fake.finishers = [lambda lines: [*bad_lines(lines), *lines[6:]]]
    with pytest.raises(JudgeError, match=r"refused batch .*content_filter"):
        fake.ask(candidates(8), backend="openai_batch")  # a code that is a list
    assert (fake.kept, fake.booked) == (7, 7)
    assert fake.ask(candidates(8), backend="openai_batch") == "?W????RW"
    assert fake.booked == 8
    assert not [text for text in fake.written() if b"SECRET" in text]


def test_polls_are_repeated_after_odd_replies_and_errors(fake):
    fine = {"id": "batch-0", "status": "in_progress"}
    odd = [[], {"object": "batch"}, {**fine, "id": ["x"]}, {**fine, "status": None}]
    odd += [{**fine, "metadata": [1]}, {**fine, "errors": {"data": 3}}]
    odd += [{**fine, "request_counts": "x"}, {**fine, "id": "sk-batch"}]
    storm = [Response(DEEP), CUT_JSON, HTML, cut, error(503)]
    storm.append(error(429, **{"Retry-After": "0"}))
    # A request is repeated once after each bad reply, so good replies are in between.
    fake.next_polls = [reply for bad in [*map(as_json, odd), *storm] for reply in (bad, fine)]
    assert fake.ask(candidates(2), backend="openai_batch") == "RW"
    assert not fake.next_polls


# Any JSON
NAMES = """choices message content refusal finish_reason output type text custom_id response
body error code status_code id status metadata errors data request_counts""".split()
JSON = any_json(NAMES, "k")


@given(JSON, st.none() | st.integers(1, 3))
def test_any_json_is_read_as_a_reply_or_as_a_bad_reply(value, together):
    try:
        reply = read_reply(value, together)
    except BadReplyError:
        return
    assert len(reply.labels) == (together or 1)
    assert {*reply.labels} <= {*LABELS, None}
    assert (reply.reason == "") == (None not in reply.labels)
    assert isinstance(reply.text, str)


@settings(max_examples=50)
@given(st.fixed_dictionaries({"content": JSON, "refusal": JSON}))
def test_a_completion_of_the_right_shape_is_read(message):
    reply = read_reply({"choices": [{"message": message}]})
    assert (reply.reason == "refusal") == bool(message["refusal"])


ROWS_OF_K = st.dictionaries(st.sampled_from(["response", "error"]), JSON).map(
    lambda rest: {**rest, "custom_id": "k"}
)


@settings(max_examples=50)
@given(st.lists(JSON | ROWS_OF_K, max_size=5))
def test_any_line_of_a_batch_is_read_or_left_out(rows):
    results = read_results(map(json.dumps, rows), {"k"})
    assert results.replies.keys() <= {"k"}
    assert all(isinstance(text, str) for text in results.unanswered + results.refused)
    rows_of_k = [row for row in rows if isinstance(row, dict) and row.get("custom_id") == "k"]
    assert bool(rows_of_k) == bool(results.replies or results.unanswered or results.refused)


@settings(max_examples=50)
@given(JSON)
def test_any_json_is_read_as_a_batch_or_as_a_bad_reply(value):
    try:
        batch = read_batch(str, value)
    except BadReplyError:
        return
    assert all(isinstance(name, str) for name in [batch.id, batch.status, *batch.files])

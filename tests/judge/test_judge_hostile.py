"""The judge's server and its files at their worst: nothing paid is lost, no secret is told."""

import csv
import errno
import gzip
import itertools
import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_server import KEY, ROOT, FakeJudge, as_json, by_hand, candidates, completion, error
from snakemake.common.configfile import load_configfile
from werkzeug import Response

from persistcal.judge import backends, client, one_by_one
from persistcal.judge.batch_results import read_batch, read_results
from persistcal.judge.cache import LabelCache
from persistcal.judge.client import JudgeServer, retry_after_s
from persistcal.judge.key import redact
from persistcal.judge.labels import LABELS, JudgeError
from persistcal.judge.ledger import COLUMNS, Ledger
from persistcal.judge.prompt import candidate_id, candidate_of
from persistcal.judge.queue import Unresolved, append_unresolved, read_human_labels
from persistcal.judge.reply import BadReplyError, Reply, read_reply
from persistcal.judge.rows import append_rows, parse_rows, read_lines
from study.check import ConfigError, check_config

DEEP = "[" * 100_000


@pytest.fixture
def fake(fake):
    fake.changed = {"retries": 1}
    return fake


# What was no reply is not kept as one ---------------------------------------------


@pytest.mark.parametrize("key", ["sk-\u200babcdefgh", "sk-abcdef\nhi", "sk-“abcdef”"])
def test_a_key_that_cannot_be_sent_is_refused_and_nothing_kept(fake, key):
    with pytest.raises(JudgeError, match=r"JUDGE_KEY cannot be sent.*character \d") as raised:
        fake.ask(candidates(3), api_key=key)
    assert "abcdef" not in str(raised.value)
    assert (fake.kept, fake.booked) == (0, 0)
    assert fake.ask(candidates(3)) == "RWR"


def test_a_request_that_cannot_be_sent_is_no_reply(fake, tmp_path):
    with pytest.raises(ValueError, match="float"):
        fake.ask(candidates(3), request={"top_p": float("nan")})
    assert (fake.kept, fake.booked) == (0, 0)
    assert not (tmp_path / "queue.csv").exists()


# Bad replies -----------------------------------------------------------------------

BAD = {
    "deep JSON": DEEP,
    "deep inside": json.dumps(completion("x")).replace('"x"', f"{'[' * 5000}{']' * 5000}"),
    "a lone surrogate": json.dumps(completion("\ud800 CORRECT")),
    "a lone surrogate in a refusal": json.dumps(completion(None, refusal="\udfff")),
    "no UTF-8": b'{"choices": "\xff\xfe"}',
    "a number too large": '{"choices": 1e400}',
    "a number too long": '{"choices": ' + "9" * 10_000 + "}",
    "choices of another kind": '{"choices": {"0": 1}}',
    "a list": "[]",
    "a message that is a list": '{"choices": [{"message": []}]}',
    "content in parts": '{"choices": [{"message": {"content": [{"text": "CORRECT"}]}}]}',
    "nothing": "",
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_a_bad_reply_waits_for_a_person_and_the_others_are_kept(fake, reply):
    fake.replies["fact 0"] = Response(reply, content_type="application/json; charset=zlib")
    some = candidates(6)
    expected = "?WRWRW"
    assert fake.ask(some) == expected
    asked = fake.asked.total()
    assert fake.ask(some) == expected
    assert fake.asked.total() == asked
    assert (fake.kept, fake.booked) == (6, 6)


@pytest.mark.parametrize(
    "code",
    [["content_filter"], {"a": 1}, 7, "\ud800", "bad_reply"],
    ids=["list", "object", "number", "surrogate", "a word of ours"],
)
def test_an_odd_error_code_stops_with_a_sentence_and_keeps_the_others(fake, code):
    fake.ask(candidates(3))
    fake.replies["wrong 3"] = error(400, code, message="so\udcff")
    with pytest.raises(JudgeError, match=r"failed \(Error code: 400 - so\?\)"):
        fake.ask(candidates(4))
    assert (fake.kept, fake.booked) == (3, 3)


@pytest.mark.parametrize(
    "after", ["inf", "nan", "1e400", "-1e400", "Mon, 01 Jan 0001 00:00:00", "soon", "\x7f"]
)
def test_an_absurd_retry_after_counts_as_none(fake, after):
    fake.next_replies = [error(429, **{"Retry-After": after})] * 2
    assert fake.ask(candidates(2), retries=9) == "RW"


@given(st.text(st.characters(codec="latin-1", exclude_categories=["Cc"])))
@example("1e309")
@example("Wed, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 32 Jan 99999 00:00:00 GMT")
def test_any_retry_after_is_a_time_or_none(text):
    response = client.httpx2.Response(
        429,
        headers={"retry-after": text.encode("latin-1")},
        request=client.httpx2.Request("GET", "x:"),
    )
    failure = client.openai.RateLimitError("", response=response, body=None)
    wait = retry_after_s(failure)
    assert wait is None or 0 <= wait < float("inf")
    assert client.is_transient(failure) == (wait is None or wait <= 600)


def test_compressed_and_endless_replies_are_bad(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_REPLY", 10_000)
    bomb = gzip.compress(b" " * 10**6)
    fake.replies["fact 0"] = Response(bomb, headers={"Content-Encoding": "gzip"})
    fake.replies["wrong 1"] = lambda request: Response(itertools.repeat(b" " * 1000))
    assert fake.ask(candidates(4)) == "??RW"
    queue = (tmp_path / "queue.csv").read_text()
    assert "compressed" in queue
    assert "more than 10000 bytes" in queue


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_reply_that_drips_has_a_time_limit(fake, start):
    def drip(request):
        with by_hand(request) as connection:
            connection.sendall(start)
            for _ in range(200):
                connection.sendall(b" ")
                time.sleep(0.04)
        return Response()

    fake.next_replies = [drip]
    begin = time.monotonic()
    assert fake.ask(candidates(1), timeout_s=0.7, retries=5) == "R"
    assert time.monotonic() - begin < 6  # of the eight seconds that it would drip


# Failures on our side ----------------------------------------------------------------


def test_what_keeps_one_reply_out_leaves_the_others_kept_and_booked(fake, monkeypatch):
    keep = LabelCache.put

    def put(self, key, reply, body):
        if "fact 4" in body["messages"][-1]["content"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        keep(self, key, reply, body)

    monkeypatch.setattr(LabelCache, "put", put)
    fake.delay_s = 0.05
    with pytest.raises(
        JudgeError,
        match=r"1 replies of the judge cannot be kept in .* \(No space left on device\); make",
    ):
        fake.ask(candidates(12), concurrency=6)
    monkeypatch.undo()
    assert 5 <= fake.kept == fake.asked.total() - 1
    assert fake.booked == fake.asked.total()
    assert fake.ask(candidates(12)) == "RW" * 6
    assert fake.asked.total() == 13


def test_replies_before_the_first_label_are_kept_when_the_server_fails(fake):
    fake.replies = {"fact 0": completion("Hm"), "wrong 1": error(401)}
    with pytest.raises(JudgeError, match="failed"):
        fake.ask(candidates(2), concurrency=1)
    assert (fake.kept, fake.booked) == (1, 1)


def test_replies_before_the_first_label_are_kept_as_soon_as_it_comes(fake):
    kept = []
    fake.replies = {"fact 0": completion("Hm"), "wrong 1": completion("Hm")}
    fake.replies["wrong 3"] = lambda request: (
        kept.append(fake.kept) or as_json(completion("INCORRECT"))
    )
    fake.ask(candidates(4), concurrency=1)
    assert kept == [3]  # two that were held, and the first label


def test_an_interrupt_loses_no_reply_on_its_way(fake, monkeypatch):
    fake.delay_s = 0.3

    def interrupted(futures):
        while not fake.busy:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(one_by_one, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fake.ask(candidates(20), concurrency=2)
    assert 1 <= fake.asked.total() == fake.kept == fake.booked < 20


# Batches -------------------------------------------------------------------------------


def bad_lines(lines):
    keys = [line["custom_id"] for line in lines]
    return [
        json.dumps(lines[0]).replace('"status_code": 200', '"status_code": 1e400'),
        json.dumps(FakeJudge.line(keys[1], {"error": {"code": ["content_filter"]}}, 400)),
        json.dumps(FakeJudge.line(keys[2], {"error": {"code": "content_filter"}}, 400)),
        json.dumps(FakeJudge.line(keys[3], completion("\ud800"))),
        json.dumps(FakeJudge.line(keys[4], "CORRECT")),
        json.dumps(FakeJudge.line(keys[5], {})),
        DEEP,
        '{"custom_id": {}}',
    ]


def test_bad_lines_of_a_batch_wait_or_are_refused_and_the_others_are_kept(fake):
    fake.finishers = [lambda batch: [*bad_lines(fake.lines(batch)), *fake.lines(batch)[6:]]]
    with pytest.raises(JudgeError, match=r"refused batch .*content_filter"):
        fake.ask(candidates(8), backend="openai_batch")  # a code that is a list
    assert (fake.kept, fake.booked) == (7, 7)
    expected = "?W????RW"
    assert fake.ask(candidates(8), backend="openai_batch") == expected
    assert fake.booked == 8


def test_a_batch_whose_replies_cannot_all_be_kept_is_collected_again(fake, monkeypatch):
    keep, failures = LabelCache.put, [OSError("no space left")]

    def put(self, key, reply, body):
        if failures:
            raise failures.pop()
        keep(self, key, reply, body)

    monkeypatch.setattr(LabelCache, "put", put)
    with pytest.raises(JudgeError, match=r"cannot be kept in .* \(no space left\); make room"):
        fake.ask(candidates(4), backend="openai_batch")
    assert fake.kept == 3
    assert fake.ask(candidates(4), backend="openai_batch") == "RW" * 2
    assert len(fake.batches) == 1
    assert fake.booked == 4


def test_odd_polls_are_asked_again(fake):
    fine = {"id": "batch-0", "status": "in_progress"}
    odd = [[], DEEP, {**fine, "id": ["x"]}, {**fine, "status": None}, {**fine, "metadata": [1]}]
    odd += [
        {**fine, "errors": {"data": 3}},
        {**fine, "request_counts": "x"},
        {**fine, "id": KEY},
    ]
    fake.next_polls = [as_json(reply) if reply != DEEP else Response(DEEP) for reply in odd]
    assert fake.ask(candidates(2), backend="openai_batch", retries=20) == "RW"
    assert not fake.next_polls


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.just("k"),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "choices message content refusal finish_reason output type text custom_id"
                " response body error code status_code id status metadata errors data"
                " request_counts".split()
            )
            | st.text(),
            inside,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.none() | st.integers(1, 3))
def test_any_json_is_a_reply_or_a_bad_reply(said, together):
    try:
        reply = read_reply(said, together)
    except BadReplyError:
        return
    assert len(reply.labels) == (together or 1)
    assert {*reply.labels} <= {*LABELS, None}
    assert (reply.reason == "") == (None not in reply.labels)
    assert isinstance(reply.text, str)


CHOICE = st.fixed_dictionaries(
    {"message": st.fixed_dictionaries({"content": JSON, "refusal": JSON})}
)


@given(st.builds(lambda choice: {"choices": [choice]}, CHOICE))
def test_a_completion_of_the_right_shape_is_read(said):
    message = said["choices"][0]["message"]
    reply = read_reply(said)
    assert (reply.reason == "refusal") == bool(message["refusal"])


PARTS = st.lists(st.dictionaries(st.sampled_from(["text", "refusal"]), st.text()), max_size=3)


@given(PARTS)
def test_a_response_of_the_right_shape_is_read(parts):
    reply = read_reply({"output": [{"type": "message", "content": parts}]}, 1)
    assert (reply.reason == "refusal") == any(part.get("refusal") for part in parts)


@given(
    st.lists(
        JSON
        | st.builds(
            lambda rest: {**rest, "custom_id": "k"},
            st.dictionaries(st.sampled_from(["response", "error"]), JSON),
        )
    )
)
def test_any_line_of_a_batch_is_read_or_left_out(rows):
    results = read_results(map(json.dumps, rows), {"k"})
    assert results.replies.keys() <= {"k"}
    assert all(isinstance(said, str) for said in results.unanswered + results.refused)
    about = [row for row in rows if isinstance(row, dict) and row.get("custom_id") == "k"]
    assert bool(about) == bool(results.replies or results.unanswered or results.refused)


@given(JSON)
def test_any_json_is_a_batch_or_a_bad_reply(said):
    try:
        batch = read_batch(said)
    except BadReplyError:
        return
    assert all(isinstance(name, str) for name in [batch.id, batch.status, *batch.files])


# Files -----------------------------------------------------------------------------------


def waiting(n, **changes):
    some = [candidate_of(f"Qü, {i}?", ['a "b"', "c"], f"d{i}") for i in range(n)]
    return [Unresolved(candidate, "refusal", "no\r\nway") for candidate in some]


def test_a_queue_cut_anywhere_stops_no_job_and_loses_no_whole_row(tmp_path):
    queue = tmp_path / "queue.csv"
    rows = waiting(2)
    ids = [candidate_id(row.candidate) for row in rows]
    append_unresolved(queue, rows)
    whole = queue.read_bytes().replace(b'\r\n,"Q', b'\r\ncorrect,"Q')
    assert read_human_labels(queue) == {}
    ends = [whole.index(number.encode()) + 32 for number in ids]
    for size in range(len(whole) + 1):
        queue.write_bytes(whole[:size])
        kept = [number for number, end in zip(ids, ends, strict=True) if end <= size]
        labels = read_human_labels(queue)
        assert {number for number in ids if number in labels} == {*kept}
        assert append_unresolved(queue, rows) == 2 - len(kept)
        assert append_unresolved(queue, rows) == 0
        filled = queue.read_bytes().replace(b'\r\n,"Q', b'\r\nincorrect,"Q')
        queue.write_bytes(filled)
        labels = read_human_labels(queue)
        assert [labels[number] for number in ids] == [
            "correct" if number in kept else "incorrect" for number in ids
        ]


def test_a_ledger_cut_anywhere_stops_no_job_and_counts_whole_lines(tmp_path):
    ledger = Ledger(tmp_path / "spending.csv")
    ledger.add("m", 10, 1.5, "asked")
    ledger.add("m", -4, -0.5, "not answered")
    whole = ledger.path.read_bytes()
    assert ledger.total() == (6, 1.0)
    first, second = (whole.index(text) + len(text) for text in (b"1.500000,", b"-0.500000,"))
    for size in range(len(whole) + 1):
        ledger.path.write_bytes(whole[:size])
        before = (6, 1.0) if size >= second else (10, 1.5) if size >= first else (0, 0.0)
        assert ledger.total() == before
        ledger.add("m", 7, 0.25, "asked")
        assert ledger.total() == (before[0] + 7, before[1] + 0.25)


@pytest.mark.parametrize("cost", ["nan", "inf", "1e400", "", "x"])
def test_a_cost_that_is_no_number_is_no_way_around_the_ceiling(tmp_path, cost):
    path = tmp_path / "spending.csv"
    append_rows(path, [COLUMNS, ["now", "m", 1, cost, "asked"], ["now", "m", 2, 3.0, "asked"]])
    assert Ledger(path).total() == (2, 3.0)


def test_a_field_above_the_limit_of_the_library_stops_no_job(fake, tmp_path):
    long = candidate_of("Q" * 200_000, ["r" * 200_000], "a" * 200_000)
    fake.replies["a" * 200_000] = completion("?" * 200_000)
    assert fake.ask([long], max_cost=99) == "?"
    assert fake.ask([long], max_cost=99) == "?"
    assert max(map(len, (tmp_path / "queue.csv").read_text().split(","))) < 32_767
    with (tmp_path / "queue.csv").open("a") as file:  # a person writes more than a person does
        file.write(f"correct,{'q' * 200_000},,,,,{candidate_id(long)}\r\n")
    assert fake.ask([long]) == "r"


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    append_rows(path, [["a", "b"]])
    monkeypatch.setattr("persistcal.judge.rows.os.fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        append_rows(path, [["c", "d"]])
    assert path.read_bytes() == b"a,b\r\n"


FIELD = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"', ",", "\n", "\r"]
)
TABLE = st.lists(st.lists(FIELD, min_size=3, max_size=3).filter(any), max_size=5)


@given(TABLE, st.sampled_from(",;\t"))
def test_rows_are_read_as_they_were_appended(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("rows") / "r.csv"
    for row in rows:
        append_rows(path, [row], delimiter=delimiter)
    read = [
        fields for _, fields in parse_rows(read_lines(path), delimiter=delimiter, columns=3)
    ]
    assert read == [[" ".join(field.splitlines()) for field in row] for row in rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,"b\nc"\nd,e\n', [(1, ["a", "b\nc"]), (3, ["d", "e"])]),  # a field of two lines
        ('a,"b\n1,2\nc"\n', [(1, None), (2, ["1", "2"]), (3, ['c"'])]),  # cut before a row
        ("a,b,c\n\nd\n", [(1, None), (3, ["d"])]),
        ('a,"b\n', [(1, None)]),
    ],
)
def test_a_quote_opened_in_a_cut_line_takes_no_later_row_with_it(text, rows):
    assert list(parse_rows(text.splitlines(keepends=True), columns=2)) == rows


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 4))
def test_any_text_is_rows(text, columns):
    lines = text.splitlines(keepends=True)
    for number, fields in parse_rows(lines, columns=columns):
        assert 1 <= number <= len(lines)
        assert fields is None or 0 < len(fields) <= columns


@pytest.mark.parametrize(
    "entry",
    [
        "[]",
        '"x"',
        '{"label": ["correct"], "reason": "", "reply": ""}',
        '{"label": "right", "reason": "", "reply": ""}',
        '{"labels": "correct", "reason": "", "reply": ""}',
        '{"labels": 3, "reason": "", "reply": ""}',
        '{"labels": ["correct", "correct"], "reason": "", "reply": ""}',
        "{",
        "\ufeff",
    ],
)
def test_a_damaged_reply_counts_as_missing(tmp_path, entry):
    cache, key = LabelCache(tmp_path), "ab" * 16
    cache.put(key, Reply(("correct",), "", "x"), {"messages": [{"content": ""}]})
    assert cache.get(key) == (("correct",), "", "x")
    (path,) = tmp_path.rglob("*.json")
    path.write_text(entry, encoding="utf-8")
    assert cache.get(key) is None


# Secrets ---------------------------------------------------------------------------------


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60),
    st.text(),
    st.text(),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_no_piece_of_a_key_is_left(key, before, after, start, length):
    piece = key[start : start + length]
    said = redact(f"{before}{piece}{after}{key}", key)
    assert not [key[i : i + 8] for i in range(len(key) - 7) if key[i : i + 8] in said]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("01234567", "[key]"),  # a piece of eight characters, all there is
        ("x12345678", "x[key]"),
        ("12345678x", "[key]x"),
        ("1234567", "1234567"),
        ("x0123456x789abcd", "x0123456x789abcd"),
        ("12345678 9abcdef/", "[key] [key]"),
        ("0123456789abcdef%2F", "[key]"),
        ("0123456789abcdef/9abcdef/", "[key][key]"),
        ("sk-abc…", "[key]…"),
        ("task-1", "task-1"),
    ],
)
def test_what_of_a_text_is_a_piece_of_a_key(text, hidden):
    assert redact(text, "0123456789abcdef/") == hidden


def test_a_key_across_the_cut_is_hidden(fake):
    key = "topsecret/0123+456789=abcdefghijk"
    for i, cut in enumerate(range(470, 501, 5)):
        fake.replies[candidates(7)[i].answer] = completion("x" * cut + key + "y" * 500)
    fake.ask(candidates(7), api_key=key)
    fake.replies["fact 0"] = error(400, "no", "z" * 440 + key.replace("/", "%2F"))
    with pytest.raises(JudgeError) as raised:
        fake.ask(candidates(1), api_key=key, model="judge-2")
    for text in [*fake.written(), str(raised.value).encode()]:
        for i in range(len(key) - 7):
            assert key[i : i + 8].encode() not in text


def test_a_server_that_names_its_batch_by_the_key_is_not_followed(fake):
    fake.next_batch_replies = [as_json({"id": f"b-{KEY}", "status": "in_progress"})]
    assert fake.ask(candidates(2), backend="openai_batch") == "RW"
    assert not [text for text in fake.written() if b"SECRET" in text]


def test_a_password_in_the_address_is_refused_and_not_told(fake):
    address = "http://user:hunter22@judge.example:8000/v1?key=hunter22"
    with pytest.raises(
        JudgeError, match=r"http://judge.example:8000/v1\) holds a user"
    ) as raised:
        fake.ask(candidates(1), base_url=address)
    assert "hunter22" not in str(raised.value)
    assert (fake.kept, fake.booked) == (0, 0)


def paper():
    files = [ROOT / "config" / f"{name}.yaml" for name in ("config", "tables")]
    return load_configfile(files[0]) | load_configfile(files[1])


@pytest.mark.parametrize(
    "address", ["http://user:hunter22@h/v1", "https://h/v1?key=hunter22", 22]
)
def test_a_config_with_a_password_in_the_address_is_refused_and_not_told(address):
    config = paper()
    config["judge"]["base_url"] = address
    with pytest.raises(
        ConfigError, match=r"^config: judge.base_url is not as it should"
    ) as raised:
        check_config(config)
    assert "22" not in str(raised.value)


@pytest.mark.parametrize(
    ("missing", "says"),
    [("model", "lacks the key model, which backend openai needs"), ("backend", "lacks a key")],
)
def test_a_config_without_what_a_paid_judge_needs_says_what(missing, says):
    config = paper()
    del config["judge"][missing]
    with pytest.raises(ConfigError, match=f"config: judge {says}"):
        check_config(config)


def test_nothing_of_the_key_is_logged_at_any_level(fake, caplog):
    caplog.set_level(0)
    for library in ("openai", "httpx2", "httpcore2"):
        client.logging.getLogger(library).setLevel(0)
    fake.next_replies = [error(500, KEY, KEY, **{"X-Request-Id": KEY, "Set-Cookie": KEY})]
    assert fake.ask(candidates(2)) == "RW"
    assert "SECRET" not in caplog.text


def test_the_ledger_is_a_csv_file(fake, tmp_path):
    fake.ask(candidates(2))
    with (tmp_path / "spending.csv").open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["asked"]


def test_the_server_says_who_it_is_without_secrets():
    server = JudgeServer(base_url="http://h:1/v1", api_key=KEY, timeout_s=1, retries=0)
    assert server.quote(f"a\ud800{KEY}") == "a?[key]"
    assert len(server.quote("x" * 10**7)) == 500
    assert backends.LARGEST_UPLOAD < 200_000_000

"""A judge behind HTTP, on the loopback, that misbehaves on request."""

import contextlib
import csv
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from persistcal.judge.backends import BACKENDS
from persistcal.judge.messages import JudgeSettings, candidate_of
from persistcal.judge.run import judge_candidates
from persistcal.questions.labels import LABELS
from persistcal.server.spending import messages_of
from persistcal.store.replies import Ledger

ROOT = Path(__file__).parents[2]
TOGETHER = (ROOT / "config/prompts/judge_together.txt").read_text(encoding="utf-8")
PROMPT = (ROOT / "config/prompts/judge.txt").read_text(encoding="utf-8")
KEY = "sk-test-SECRET0123456789"
ANSWER = re.compile(r"Candidate answer: (.*)")
LISTED = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
REFERENCE = re.compile(r"^- (.*)$", re.MULTILINE)


def any_json(names, value):
    """Return a strategy of JSON values, often `value` or objects with keys in `names`."""
    return st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.just(value),
        lambda children: (
            st.lists(children, max_size=3)
            | st.dictionaries(st.sampled_from(names) | st.text(), children, max_size=4)
        ),
        max_leaves=12,
    )


def as_json(value, status=200, **headers):
    return Response(json.dumps(value), status, headers, content_type="application/json")


def error(status, code="some_code", message="no", **headers):
    return as_json({"error": {"message": message, "code": code}}, status, **headers)


def completion(content, refusal=None, finish_reason="stop"):
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion", "choices": [choice]}


def response(text, reason=None):
    """A reply of the interface for responses, with thoughts before its text."""
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "role": "assistant", "content": parts}
    ended = {"incomplete_details": reason and {"reason": reason}}
    return {"object": "response", "output": [{"type": "reasoning"}, message], **ended}


def cut(request):
    """Close the connection without a word."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()


@contextlib.contextmanager
def by_hand(request):
    """Write to the connection by hand; it is closed afterwards."""
    connection = request.environ["werkzeug.socket"]
    with contextlib.suppress(OSError):  # the other side has given up
        yield connection
        connection.shutdown(socket.SHUT_RDWR)


def cut_in_the_middle(request):
    """Promise more of a reply than is sent."""
    return Response(b'{"choices": [', headers={"Content-Length": "500"})


def candidates(n):
    """Return n candidates; the fake judge labels the even ones correct."""
    return [
        candidate_of(f"Question {i}?", [f"fact {i}"], f"wrong {i}" if i % 2 else f"fact {i}")
        for i in range(n)
    ]


def reply_to(request, reply):
    """Make a Response of a completion, a Response, or a function of the request."""
    if not isinstance(reply, dict | Response):
        reply = reply(request)
    return as_json(reply) if isinstance(reply, dict) else reply


JOB = f"""
import json, os, sys
sys.path[:0] = ["{ROOT}", "{ROOT}/tests/helpers"]
from judge_server import KEY, candidates
from persistcal.judge.messages import JudgeSettings
from persistcal.judge.backends import BACKENDS
from persistcal.judge.run import judge_candidates
settings, folder, n = JudgeSettings(**json.loads(sys.argv[1])), sys.argv[2], int(sys.argv[3])
os.environ["JUDGE_KEY"] = KEY
how = {{"noted": folder + "/noted.csv", "in_batches": BACKENDS[settings.backend].in_batches}}
judge_candidates(candidates(n), folder, settings, **how)
"""


def start_job(settings, folder, n):
    """Judge `candidates(n)` in another process, which a test can kill."""
    arguments = [json.dumps(vars(settings)), str(folder), str(n)]
    return subprocess.Popen([sys.executable, "-c", JOB, *arguments])


class Server(HTTPServer):
    def thread_target(self):
        self.server.serve_forever(poll_interval=0.01)  # the time to stop the server


class FakeServer:
    """A server on the loopback. It sends all `next_replies` first, one for each request.

    The jobs that ask it have a ledger and a `cache` of replies in their `folder`.
    """

    cache = "cache"

    def __init__(self, folder, replies):
        self.folder, self.delay_s, self.lock = folder, 0.0, threading.Lock()
        self.asked, self.times, self.next_replies = Counter(), [], []
        self.server = Server(host="127.0.0.1", threaded=True)
        for (method, path), reply in replies.items():
            place = re.compile(f"^/v1/{path}$")
            self.server.expect_request(place, method).respond_with_handler(reply)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.server.check()  # raises errors of the handlers

    def scripted_reply(self):
        """Note the time of a request, and return its reply of `next_replies`, or None."""
        with self.lock:
            self.times.append(time.monotonic())
            return self.next_replies.pop(0) if self.next_replies else None

    @property
    def spent(self):
        """Return the number of requests in the ledger, and their cost."""
        return Ledger(f"{self.folder}/spending.csv").total()

    @property
    def booked(self):
        """Return the number of requests in the ledger."""
        return self.spent[0]

    @property
    def kept(self):
        """Return the number of replies in the cache."""
        return len(list(self.folder.glob(f"{self.cache}/*/*.json")))


class FakeJudge(FakeServer):
    """Grades by equality with a reference.

    Jobs that `ask` starts use the judge's folder `folder` and the settings `changed`. `asked`
    counts the requests to grade each answer, also in batches. `replies` maps an answer, or
    the first of several answers, to a completion or a Response that replaces its grade.
    """

    def __init__(self, folder=None):
        super().__init__(
            folder,
            {
                ("POST", "(chat/completions|responses)"): self.chat,
                ("POST", "files"): self.upload,
                ("POST", "batches"): self.submit,
                ("GET", "batches"): self.listed,
                ("GET", "batches/.*"): self.poll,
                ("GET", "files/.*/content"): self.content,
            },
        )
        self.changed, self.replies, self.busy, self.most_busy = {}, {}, 0, 0
        self.files, self.uploads, self.batches = {}, [], {}
        self.finishers, self.polls_needed, self.page = [], 0, 100
        self.needed_side_by_side = 0  # batches that must be submitted before one ends
        self.next_batch_replies, self.next_polls, self.polled = [], [], Counter()

    def settings(self, **changes):
        defaults = {
            **{"backend": "openai", "model": "judge-1", "prompt": PROMPT},
            **{"base_url": self.server.url_for("/v1"), "api_key_env": "JUDGE_KEY"},
            "request": {"max_completion_tokens": 16, "reasoning_effort": None},
            **{"concurrency": 4, "timeout_s": 5, "retries": 3, "poll_s": 0.01},
            **{"price_input": 2.5, "price_output": 15, "max_requests": 1000, "max_cost": 10},
            **{"first_wait_s": 0.01, "undecided": "not_attempted"},
        }
        return JudgeSettings(**{**defaults, **self.changed, **changes})

    def ask(self, candidates_asked, api_key=KEY, job="noted", **changes):
        """Return a job's labels of `some` candidates, a character each.

        R, W and N are the judge's labels right, wrong and not attempted; r, w and n are a
        person's; ? waits for one.
        """
        os.environ["JUDGE_KEY"] = api_key
        settings = self.settings(**changes)
        labels = judge_candidates(
            candidates_asked,
            str(self.folder),
            settings,
            noted=f"{self.folder}/{job}.csv",
            in_batches=BACKENDS[settings.backend].in_batches,
        )
        sources = {settings.model: "RWN", "human": "rwn", "queue": "  ?"}
        return "".join(sources[source][LABELS.index(label)] for label, source in labels)

    @property
    def waiting(self):
        """The rows of the queue."""
        with (self.folder / "queue.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def fill_in(self, **labels):
        """Write labels next to answers, as a person does."""
        rows = self.waiting
        for row in rows:
            row["label"] = labels.get(row["answer"].replace(" ", "_"), row["label"])
        with (self.folder / "queue.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)

    def written(self):
        """The contents of all files below the folder."""
        return [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]

    def grade(self, body):
        """The completion, or Response, for one request."""
        user = messages_of(body)[-1]["content"]
        listed = LISTED.findall(user)
        answers = listed or [ANSWER.search(user)[1]]
        with self.lock:
            self.asked["|".join(answers)] += 1
        references = REFERENCE.findall(user)
        labels = [["INCORRECT", "CORRECT"][answer in references] for answer in answers]
        lines = [f"{i}. {label}" for i, label in enumerate(labels, start=1)]
        grades = (response if "input" in body else completion)(
            "\n".join(lines if listed else labels)
        )
        return self.replies.get(answers[0], grades)

    def chat(self, request: Request):
        scripted = self.scripted_reply()
        with self.lock:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
        try:
            time.sleep(self.delay_s)
            if scripted is not None:
                return reply_to(request, scripted)
            body = request.get_json()
            assert body["temperature"] == 0
            assert request.headers["Accept-Encoding"] == "identity"
            assert body.get("reasoning_effort", "none") == "none"  # null is left out
            return reply_to(request, self.grade(body))
        finally:
            with self.lock:
                self.busy -= 1

    def upload(self, request: Request):
        assert request.form["purpose"] == "batch"
        name = f"file-{len(self.uploads)}"
        self.files[name] = request.files["file"].read()
        self.uploads.append(self.files[name].splitlines())
        return as_json(
            {"id": name, "object": "file", "purpose": "batch", "status": "processed"}
        )

    def submit(self, request: Request):
        asked = request.get_json()
        lines = map(json.loads, self.files[asked["input_file_id"]].splitlines())
        assert {line["url"] for line in lines} == {asked["endpoint"]}
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "status": "in_progress",
            "input_file_id": asked["input_file_id"],
            "metadata": asked["metadata"],
            "request_counts": {"completed": 0, "failed": 0, "total": 1},
        }
        if self.next_batch_replies:
            return reply_to(request, self.next_batch_replies.pop(0))
        return as_json(self.batches[name])

    def listed(self, request: Request):
        newest = list(self.batches.values())[::-1]
        ids = [batch["id"] for batch in newest]
        start = ids.index(request.args["after"]) + 1 if "after" in request.args else 0
        page = newest[start : start + self.page]
        more = start + self.page < len(newest)
        return as_json({"object": "list", "data": page, "has_more": more})

    def lines(self, batch):
        """A result line for each request of the batch."""
        requests = map(json.loads, self.files[batch["input_file_id"]].splitlines())
        return [self.line(row["custom_id"], self.grade(row["body"])) for row in requests]

    @staticmethod
    def line(key, body, status=200):
        response = {"status_code": status, "request_id": "r", "body": body}
        return {"id": "l", "custom_id": key, "response": response, "error": None}

    def poll(self, request: Request):
        name = request.path.rsplit("/", 1)[1]
        batch = self.batches[name]
        self.polled[name] += 1
        if self.next_polls:
            return reply_to(request, self.next_polls.pop(0))
        is_due = self.polled[name] > self.polls_needed
        is_due &= len(self.batches) >= self.needed_side_by_side
        if batch["status"] == "in_progress" and is_due:
            finish = self.finishers.pop(0) if self.finishers else lambda lines: lines
            self.finish(batch, finish(self.lines(batch)))
        return as_json(batch)

    def finish(self, batch, lines, errors=(), status="completed"):
        """End `batch`; `lines` can be a tuple (lines, errors, status)."""
        if isinstance(lines, tuple):
            lines, errors, status = lines
        batch["status"] = status
        for kind, rows in (("output", lines), ("error", errors)):
            if rows:
                texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
                self.files[f"{batch['id']}-{kind}"] = "\n".join(texts).encode()
                batch[f"{kind}_file_id"] = f"{batch['id']}-{kind}"

    def content(self, request: Request):
        content = self.files[request.path.split("/")[3]]

        def parts():
            for start in range(0, len(content), len(content) // 5 + 1):
                time.sleep(self.delay_s)
                yield content[start : start + len(content) // 5 + 1]

        return Response(parts())

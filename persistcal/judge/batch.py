"""Ask a judge in batches: half the price, and an answer within a day.

Any job, now or after a restart, can wait for a batch and collect it: all that
is needed is in its `persistcal.judge.batch_record.Record`.
"""

import io
import itertools
import json
import logging
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from persistcal.judge.batch_record import Record
from persistcal.judge.cache import LabelCache
from persistcal.judge.client import LONGEST_TRANSFER_S, JudgeServer, ServerError, in_json
from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import Ledger
from persistcal.judge.prompt import asked_together
from persistcal.judge.reply import (
    REFUSAL_CODES,
    BadReplyError,
    Reply,
    check_labelled,
    no_labels,
    read_reply,
)

log = logging.getLogger(__name__)

LABEL = "persistcal"  # of a batch, with the token of its record
OVER = {"completed", "failed", "expired", "cancelled"}
LONGEST_WAIT_S = 48 * 3600
SEARCHED_PAGES = 10  # of 100 batches, newest first, for one whose submission was cut short


class Batch(NamedTuple):
    """What a server says of a batch, and `token`, which we gave it."""

    id: str
    status: str
    token: str
    progress: str
    files: list[str]
    error: str


class Results(NamedTuple):
    """What a batch brought: replies by key, and the failures that may pass or will not."""

    replies: dict[str, Reply]
    unanswered: list[str]
    refused: list[str]


def read_batch(said: Any) -> Batch:  # noqa: ANN401
    """Read what a server says of a batch, as parsed from JSON.

    Raises
    ------
    BadReplyError
        When that is no batch.
    """
    try:
        files = [said.get(f"{kind}_file_id") for kind in ("output", "error")]
        token = (said.get("metadata") or {}).get(LABEL)
        counts = said.get("request_counts") or {}
        progress = f"{counts.get('completed')} of {counts.get('total')}"
        errors = [error["message"] for error in (said.get("errors") or {}).get("data") or []]
        batch = Batch(
            *(said["id"], said["status"], str(token), progress, [*filter(None, files)]),
            error=str(errors[-1] if errors else ""),
        )
    except (AttributeError, KeyError, TypeError, RecursionError):
        raise BadReplyError("not a batch") from None
    names = [batch.id, batch.status, *batch.files]
    if not all(isinstance(name, str) and name for name in names):
        raise BadReplyError("not a batch")
    return batch


def read_line(line: str, wanted: set[str]) -> tuple[str, Reply | None, str, bool]:
    """Read one line of a batch's results.

    Returns
    -------
    key : str
        Of the request.
    reply : Reply or None
        None when the request failed.
    said : str
        How it failed.
    passes : bool
        Whether asking again may help.

    Raises
    ------
    BadReplyError
        When the line is about no request that was asked for.
    """
    try:
        row = json.loads(line)
        key = row["custom_id"]
        asked = key in wanted
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadReplyError("a line that is not readable") from None
    if not asked:
        raise BadReplyError("a reply that was not asked for")
    together = asked_together(key)
    try:
        response = row.get("response") or {}
        body, status = response.get("body") or {}, int(response.get("status_code") or 0)
        if status == 200:
            return key, read_reply(body, together), "", False
        error = row.get("error") or body.get("error") or {}
        error = error if isinstance(error, dict) else {"message": error}
        code, said = error.get("code"), f"{error.get('code')}: {error.get('message')}"
    except (ValueError, OverflowError, TypeError, AttributeError, RecursionError) as bad:
        return key, no_labels(together, "malformed", f"{bad}: {line}"), "", False
    if isinstance(code, str) and code in REFUSAL_CODES:
        return key, no_labels(together, "refusal", said), "", False
    return key, None, said, status in (0, 408, 409, 429) or status >= 500


def read_results(lines: Iterable[str], wanted: set[str]) -> Results:
    """Read the output and error lines of a batch, in whatever order they come.

    Two replies with different labels under one key are left to a person. Lines
    that are no JSON or that nobody asked for do not count.
    """
    results = Results({}, [], [])
    for line in filter(str.strip, lines):
        try:
            key, reply, said, passes = read_line(line, wanted)
        except BadReplyError as error:
            log.warning("A batch's results hold %s", error)
            continue
        if reply is None:
            (results.unanswered if passes else results.refused).append(said)
            continue
        before = results.replies.setdefault(key, reply)
        if before.labels != reply.labels:
            both = f"two replies: {before.text} and {reply.text}"
            results.replies[key] = no_labels(asked_together(key), "malformed", both)
    return results


def _public_batch(server: JudgeServer, said: Any) -> Batch:  # noqa: ANN401
    """Read a batch, whose name is going to be written down and logged."""
    batch = read_batch(said)
    if server.quote(batch.id + batch.status) != batch.id + batch.status:
        raise BadReplyError("a batch whose name cannot be told")
    return batch


def _search(server: JudgeServer, token: str) -> Batch | None:
    asked: dict[str, object] = {"limit": 100}
    for _ in range(SEARCHED_PAGES):
        read = in_json(partial(_read_page, server))
        batches, more = server.send("get", "/batches", read, options={"params": asked})
        for batch in batches:
            if batch.token == token:
                return batch
        if not (batches and more):
            return None
        asked["after"] = batches[-1].id
    return None


def _read_page(server: JudgeServer, said: Any) -> tuple[list[Batch], bool]:  # noqa: ANN401
    try:
        batches = [_public_batch(server, one) for one in said["data"]]
        return batches, said.get("has_more") is True
    except (AttributeError, KeyError, TypeError):
        raise BadReplyError("not a list of batches") from None


def _read_file(said: Any) -> str:  # noqa: ANN401
    if not (isinstance(said, dict) and isinstance(said.get("id"), str)):
        raise BadReplyError("not a file")
    return str(said["id"])


def submit(server: JudgeServer, record: Record) -> None:
    """Upload the requests of `record`, have them run, and write down where."""
    upload = partial(
        server.send,
        *("post", "/files", in_json(_read_file)),
        body={"purpose": "batch"},
        files=[("file", ("judge.jsonl", record.upload()))],
        options={"headers": {"Content-Type": "multipart/form-data"}},
    )
    file_id = server.call(upload, longest_s=LONGEST_TRANSFER_S)
    about = {
        "input_file_id": file_id,
        "endpoint": record.endpoint(),
        "completion_window": "24h",
        "metadata": {LABEL: record.token},
    }
    tries = itertools.count()

    def create() -> Batch:
        # a try whose reply was lost may have made the batch; a second one is paid twice
        if next(tries) and (batch := _search(server, record.token)):
            return batch
        return server.send(
            "post", "/batches", in_json(partial(_public_batch, server)), body=about
        )

    batch = server.call(create)
    record.save(batch.id, record.state()[1])
    log.info("Submitted batch %s", batch.id)


def find_submitted(server: JudgeServer, record: Record) -> bool:
    """Whether `record`, whose submission was cut short, did reach the server."""
    batch = server.call(partial(_search, server, record.token))
    if batch:
        record.save(batch.id, record.state()[1])
        log.info("Found batch %s of an interrupted job", batch.id)
    return batch is not None


def wait_for(server: JudgeServer, record: Record, *, poll_s: float) -> Batch | None:
    """Return the batch of `record` when it is over; None when another job collected it.

    Raises
    ------
    JudgeError
        When it is still not over after two days.
    """
    batch_id = record.state()[0]

    where = f"/batches/{urllib.parse.quote(str(batch_id), safe='')}"
    fetch = partial(server.send, "get", where, in_json(partial(_public_batch, server)))
    for _ in range(int(LONGEST_WAIT_S / poll_s) + 1):
        if batch_id is None or not record.exists():
            return None
        batch = server.call(fetch)
        if batch.status in OVER:
            return batch
        log.info("Batch %s is %s: %s", batch_id, batch.status, server.quote(batch.progress))
        time.sleep(poll_s)
    raise JudgeError(f"Batch {batch_id} is not over after two days; run again to wait on.")


def collect(
    server: JudgeServer, record: Record, batch: Batch, cache: LabelCache, ledger: Ledger
) -> None:
    """Keep the replies of a batch that is over in `cache`, and forget the batch.

    Raises
    ------
    JudgeError
        When the server refused the batch, or a request for good, or when no
        reply has a label.
    OSError
        When a reply cannot be kept; the others are, and the batch stays known.
    """
    if not record.exists():
        return  # another job was faster
    bodies, cost = record.bodies(), record.state()[1]
    replies, unanswered, refused = read_results(_lines(server, batch), set(bodies))
    replies = {
        key: reply._replace(text=server.quote(reply.text)) for key, reply in replies.items()
    }
    log.info("Batch %s is %s: %d replies", batch.id, batch.status, len(replies))
    try:
        check_labelled(replies.values())
    except JudgeError:
        record.remove()
        raise
    cache.put_all(replies, bodies)
    record.remove()
    lost = len(bodies) - len(replies)
    model = next(iter(bodies.values()))["model"]
    ledger.add(model, -lost, -cost * lost / len(bodies), "not answered")
    if unanswered:
        log.warning("Failures that may pass: %s", server.quote(unanswered[0]))
    if refused := refused or ([f"failed: {batch.error}"] if batch.status == "failed" else []):
        said = server.quote(refused[0])
        raise ServerError(
            f"The judge's server refused batch {batch.id} ({said}). Correct the cause (judge "
            "in the config) and run again.",
            said=said,
        )


def _lines(server: JudgeServer, batch: Batch) -> Iterator[str]:
    for file_id in batch.files:
        where = f"/files/{urllib.parse.quote(file_id, safe='')}/content"
        fetch = partial(server.send, "get", where, bytes)
        for line in io.BytesIO(server.call(fetch, longest_s=LONGEST_TRANSFER_S)):
            yield line.decode("utf-8", errors="replace")

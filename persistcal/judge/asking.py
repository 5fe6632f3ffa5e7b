"""Ask a judge behind a server: request by request, or in batches.

Batches often cost half the price, and are answered within a day. Any job can wait for a batch
and collect it, also after a restart, from its `persistcal.store.replies.BatchRecord`.
"""

import io
import itertools
import logging
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from persistcal.judge.messages import (
    JudgeSettings,
    Replies,
    Reply,
    asked_together,
    check_labelled,
    no_labels,
    read_reply,
    read_results,
)
from persistcal.questions.labels import JudgeError, Words
from persistcal.server.client import LONGEST_TRANSFER_S, ModelServer, ask_at_once, in_json
from persistcal.server.spending import (
    BadReplyError,
    Body,
    ServerError,
    UnreadableError,
    endpoint_of,
)
from persistcal.store.replies import BatchRecord, Ledger, hold_lock, upload_line

log = logging.getLogger(__name__)

BATCH_ROUNDS = 3
LARGEST_UPLOAD = 150_000_000  # bytes; servers take 200 MB
WAITING = "Waiting for another job that is asking the judge."
LABEL = "persistcal"  # labels a batch with the token of the record
OVER = {"completed", "failed", "expired", "cancelled", "canceled"}
NO_BATCHES = {404, 405, 501}  # HTTP status of a server without the interface for batches
LONGEST_WAIT_S = 48 * 3600
SEARCHED_PAGES = 10  # pages of 100 batches, newest first, after an interrupted submission


def ask_one_by_one(
    server: ModelServer, bodies: dict[str, Body], folder: str, settings: JudgeSettings
) -> None:
    """Send `bodies`, requests by key, to the judge, and keep the replies in `folder`."""
    replies = Replies(folder, settings.labels)
    with hold_lock(f"{folder}/lock", waiting=WAITING):
        missing = replies.missing(bodies)
        incoming = _Incoming(replies, missing)
        try:
            ask_at_once(
                missing,
                partial(_ask_one, server, settings.labels),
                incoming.keep,
                server=server,
                budget=settings.budget,
                ledger=Ledger(f"{folder}/spending.csv"),
            )
        finally:
            incoming.keep_held()


def _ask_one(server: ModelServer, words: Words, key: str, body: Body) -> Reply:
    """Return the reply to the request `body`; a person decides if it has no label."""
    together = asked_together(key)
    read = partial(read_reply, together=together, words=words)
    try:
        reply = server.complete(body, read, partial(no_labels, together, "refusal"))
    except UnreadableError as error:
        return no_labels(together, "malformed", error.reply)
    return reply._replace(text=server.quote(reply.text))


class _Incoming:
    """Replies from several threads, in order of arrival.

    Replies are written at once, except before the first label, because all might be useless.
    """

    def __init__(self, replies: Replies, bodies: Mapping[str, Body]) -> None:
        self._replies, self._bodies = replies, bodies
        self._held: dict[str, Reply] = {}
        self._labelled = self._rubbish = False
        self._lock = threading.Lock()

    def keep(self, key: str, reply: Reply) -> None:
        """Take one reply, and refuse to go on when none of the first has a label."""
        with self._lock:
            self._labelled |= any(reply.labels)
            if self._labelled or not self._rubbish:
                self._held[key] = reply
            if self._labelled:
                self.keep_held()
            elif not self._rubbish:
                try:
                    check_labelled(self._held.values())
                except JudgeError:
                    self._rubbish = True
                    self._held.clear()
                    raise

    def keep_held(self) -> None:
        """Write the waiting replies, once one has a label or all have arrived."""
        held, self._held = self._held, {}
        self._replies.put(held, self._bodies)


class ServerBatch(NamedTuple):
    """A batch as a server describes it, and `token`, which we gave it."""

    id: str
    status: str
    token: str
    progress: str
    files: list[str]
    error: str


def read_batch(quote: Callable[[str], str], parsed: Any) -> ServerBatch:  # noqa: ANN401
    """Read a server's description of a batch, as parsed from JSON, or raise BadReplyError.

    `quote` removes secrets, because the name of the batch is stored and logged.
    """
    try:
        files = [parsed.get(f"{kind}_file_id") for kind in ("output", "error")]
        token = (parsed.get("metadata") or {}).get(LABEL)
        counts = parsed.get("request_counts") or {}
        progress = f"{counts.get('completed')} of {counts.get('total')}"
        errors = [error["message"] for error in (parsed.get("errors") or {}).get("data") or []]
        batch = ServerBatch(
            *(parsed["id"], parsed["status"].lower(), str(token), progress),
            files=[*filter(None, files)],
            error=str(errors[-1] if errors else ""),
        )
    except (AttributeError, KeyError, TypeError, RecursionError):
        raise BadReplyError("not a batch") from None
    names = [batch.id, batch.status, *batch.files]
    if not all(isinstance(name, str) and name for name in names):
        raise BadReplyError("not a batch")
    if quote(batch.id + batch.status) != batch.id + batch.status:
        raise BadReplyError("a batch with a secret name")
    return batch


def _search(server: ModelServer, token: str) -> ServerBatch | None:
    """Return the batch with our `token`, or None if the newest batches lack it."""

    def read_page(parsed: Any) -> tuple[list[ServerBatch], bool]:  # noqa: ANN401
        try:
            batches = [read_batch(server.quote, entry) for entry in parsed["data"]]
            return batches, parsed.get("has_more") is True
        except (AttributeError, KeyError, TypeError):
            raise BadReplyError("not a list of batches") from None

    query: dict[str, object] = {"limit": 100}
    for _ in range(SEARCHED_PAGES):
        options = {"params": query}
        batches, more = server.send("get", "/batches", in_json(read_page), options=options)
        found = next((batch for batch in batches if batch.token == token), None)
        if found or not (batches and more):
            return found
        query["after"] = batches[-1].id
    return None


def _read_file(parsed: Any) -> str:  # noqa: ANN401
    if not (isinstance(parsed, dict) and isinstance(parsed.get("id"), str)):
        raise BadReplyError("not a file")
    return str(parsed["id"])


def ask_in_batches(
    server: ModelServer, bodies: dict[str, Body], folder: str, settings: JudgeSettings
) -> None:
    """Submit requests that are in no batch, wait for all relevant batches, and repeat.

    The lock is held while submitting and collecting, not while waiting, so
    batches of several jobs run side by side.
    """
    replies, ledger = Replies(folder, settings.labels), Ledger(f"{folder}/spending.csv")
    records = f"{folder}/batches"
    for _ in range(BATCH_ROUNDS):
        with hold_lock(f"{folder}/lock", waiting=WAITING):
            missing = replies.missing(bodies)
            waiting = _on_their_way(server, ledger, records)
            on_way = {key for keys in waiting.values() for key in keys}
            if new := {key: body for key, body in missing.items() if key not in on_way}:
                cost = settings.budget.plan(new.values(), ledger)
                for part in _parts(new, settings.batch_requests):
                    ledger.add(settings.model, len(part), cost * len(part), "batch")
                    lines = (_line(key, body) for key, body in part.items())
                    record = BatchRecord.create(records, lines, cost * len(part))
                    try:
                        _submit(server, record)
                    except ServerError as error:
                        if error.status not in NO_BATCHES:
                            raise
                        ledger.add(settings.model, -len(part), -cost * len(part), "no batches")
                        record.remove()
                        raise JudgeError(
                            f"The judge's server takes no batches ({error.status} at /files or "
                            "/batches); set the line `judge: {backend: openai}`, and prices of "
                            "single requests. Nothing was asked."
                        ) from error
                    waiting[record] = set(part)
        for record, keys in waiting.items():
            if keys.isdisjoint(missing):
                continue
            try:
                if batch := _wait_for(server, record, poll_s=settings.poll_s):
                    with hold_lock(f"{folder}/lock", waiting=WAITING):
                        _collect(server, record, batch, replies, ledger)
            except ServerError as error:
                if error.status != 404:
                    raise
                raise JudgeError(
                    f"The judge's server no longer knows the batch of {record.path} or its "
                    "results. If server and key are those that it was sent with, delete "
                    f"this file; then its {len(keys)} requests are asked, and paid, again."
                ) from error
        if not replies.missing(bodies):
            return
    raise JudgeError(
        f"{len(replies.missing(bodies))} requests have no reply after {BATCH_ROUNDS} rounds of "
        "batches; run again, or set judge.backend to openai."
    )


def _line(key: str, body: Body) -> dict[str, object]:
    url = f"/v1{endpoint_of(body)}"
    return {"custom_id": key, "method": "POST", "url": url, "body": body}


def _on_their_way(
    server: ModelServer, ledger: Ledger, folder: str
) -> dict[BatchRecord, set[str]]:
    """Return the batches of all jobs with their keys; forget those never submitted."""
    unfinished = {}
    for record in BatchRecord.all_in(folder):
        bodies = record.bodies()
        batch_id, cost = record.state()
        if not batch_id and (batch := server.call(partial(_search, server, record.token))):
            record.save(batch_id := batch.id)
            log.info("Found batch %s of an interrupted job", batch_id)
        if batch_id:
            unfinished[record] = set(bodies)
        else:
            model = next(iter(bodies.values()))["model"]
            ledger.add(model, -len(bodies), -cost, "not submitted")
            record.remove()
    return unfinished


def _parts(bodies: dict[str, Body], most: int) -> Iterator[dict[str, Body]]:
    """Split `bodies` into batches that a server takes."""
    part: dict[str, Body] = {}
    size = 0
    for key, body in bodies.items():
        length = len(upload_line(_line(key, body)))
        if part and (len(part) == most or size + length > LARGEST_UPLOAD):
            yield part
            part, size = {}, 0
        part[key] = body
        size += length
    yield part


def _submit(server: ModelServer, record: BatchRecord) -> None:
    """Upload the requests of `record`, have them run, and write down where."""
    upload = partial(
        server.send,
        *("post", "/files", in_json(_read_file)),
        body={"purpose": "batch"},
        files=[("file", ("judge.jsonl", record.upload()))],
        options={"headers": {"Content-Type": "multipart/form-data"}},
    )
    fields = {
        "input_file_id": server.call(upload, longest_s=LONGEST_TRANSFER_S),
        "endpoint": record.lines()[0]["url"],
        "completion_window": "24h",
        "metadata": {LABEL: record.token},
    }
    tries, read = itertools.count(), in_json(partial(read_batch, server.quote))

    def create() -> ServerBatch:
        # An attempt with a lost reply can have created the batch; a second batch costs twice.
        if next(tries) and (batch := _search(server, record.token)):
            return batch
        return server.send("post", "/batches", read, body=fields)

    batch = server.call(create)
    record.save(batch.id)
    log.info("Submitted batch %s", batch.id)


def _wait_for(server: ModelServer, record: BatchRecord, *, poll_s: float) -> ServerBatch | None:
    """Return the finished batch of `record`, or None if another job collected it."""
    batch_id = record.state()[0]
    path = f"/batches/{urllib.parse.quote(str(batch_id), safe='')}"
    fetch = partial(server.send, "get", path, in_json(partial(read_batch, server.quote)))
    for _ in range(int(LONGEST_WAIT_S / poll_s) + 1):
        if batch_id is None or not record.path.exists():
            return None
        batch = server.call(fetch)
        if batch.status in OVER:
            return batch
        log.info("Batch %s is %s: %s", batch_id, batch.status, server.quote(batch.progress))
        time.sleep(poll_s)
    raise JudgeError(f"Batch {batch_id} is not over after two days; run again to wait on.")


def _collect(
    server: ModelServer,
    record: BatchRecord,
    batch: ServerBatch,
    replies: Replies,
    ledger: Ledger,
) -> None:
    """Write the replies of a finished batch. The record stays if a reply cannot be written.

    Final refusals of the server are raised after the other replies are written.
    """
    if not record.path.exists():
        return  # another job was faster
    bodies, cost = record.bodies(), record.state()[1]
    labelled, unanswered, refused = read_results(
        _lines(server, batch), set(bodies), replies.words
    )
    labelled = {
        key: reply._replace(text=server.quote(reply.text)) for key, reply in labelled.items()
    }
    log.info("Batch %s is %s: %d replies", batch.id, batch.status, len(labelled))
    try:
        check_labelled(labelled.values())
    except JudgeError:
        record.remove()
        raise
    replies.put(labelled, bodies)
    record.remove()
    lost = len(bodies) - len(labelled)
    model = next(iter(bodies.values()))["model"]
    ledger.add(model, -lost, -cost * lost / len(bodies), "not answered")
    if unanswered:
        log.warning("Temporary failures: %s", server.quote(unanswered[0]))
    if refused := refused or ([f"failed: {batch.error}"] if batch.status == "failed" else []):
        raise ServerError(
            f"The judge's server refused batch {batch.id} ({server.quote(refused[0])}). "
            "Correct the cause (judge in the config) and run again."
        )


def _lines(server: ModelServer, batch: ServerBatch) -> Iterator[str]:
    for file_id in batch.files:
        path = f"/files/{urllib.parse.quote(file_id, safe='')}/content"
        fetch = partial(server.send, "get", path, bytes)
        for line in io.BytesIO(server.call(fetch, longest_s=LONGEST_TRANSFER_S)):
            yield line.decode("utf-8-sig", errors="replace")

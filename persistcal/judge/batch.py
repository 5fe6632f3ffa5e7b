"""Ask a judge in batches: half the price, and an answer within a day.

Any job, now or after a restart, can wait for a batch and collect it: all that
is needed is in its `persistcal.judge.batch_record.Record`.
"""

import functools
import itertools
import json
import logging
import time
from collections.abc import Iterator
from typing import NamedTuple

import openai
from openai.types import Batch

from persistcal.judge.batch_record import ENDPOINT, Record
from persistcal.judge.cache import LabelCache
from persistcal.judge.client import JudgeServer, ServerError
from persistcal.judge.labels import JudgeError, Verdict
from persistcal.judge.ledger import Ledger
from persistcal.judge.requests import (
    REFUSAL_CODES,
    BadReplyError,
    check_labelled,
    read_completion,
)

log = logging.getLogger(__name__)

LABEL = "persistcal"  # of a batch, with the token of its record
OVER = {"completed", "failed", "expired", "cancelled"}
LONGEST_WAIT_S = 48 * 3600
SEARCHED_BATCHES = 1000  # newest ones, for a batch whose submission was cut short


class Results(NamedTuple):
    """What a batch brought: verdicts by key, and the failures that may pass or will not."""

    verdicts: dict[str, Verdict]
    unanswered: list[str]
    refused: list[str]


def read_results(lines: Iterator[str], wanted: set[str]) -> Results:
    """Read the output and error lines of a batch, in whatever order they come.

    Two different verdicts under one key are left to a person. Lines that are
    no JSON or that nobody asked for do not count.
    """
    results = Results({}, [], [])
    for line in filter(str.strip, lines):
        try:
            row = json.loads(line)
            key, response = str(row["custom_id"]), row.get("response") or {}
            body, status = response.get("body") or {}, int(response.get("status_code") or 0)
            error = row.get("error") or body.get("error") or {}
            code, said = error.get("code"), f"{error.get('code')}: {error.get('message')}"
        except (ValueError, KeyError, TypeError, AttributeError):
            log.warning("A batch's results hold a line that is not readable")
            continue
        if key not in wanted:
            log.warning("A batch's results hold a reply that was not asked for")
            continue
        if status == 200:
            try:
                verdict = read_completion(body)
            except BadReplyError as bad:
                verdict = Verdict(None, "malformed", str(bad))
        elif code in REFUSAL_CODES:
            verdict = Verdict(None, "refusal", said)
        else:
            passes = status in (0, 408, 409, 429) or status >= 500
            (results.unanswered if passes else results.refused).append(said)
            continue
        before = results.verdicts.setdefault(key, verdict)
        if before.label != verdict.label:
            both = f"two replies: {before.reply!r} and {verdict.reply!r}"
            results.verdicts[key] = Verdict(None, "malformed", both)
    return results


def _search(client: openai.OpenAI, *, token: str) -> Batch | None:
    newest = itertools.islice(client.batches.list(limit=100), SEARCHED_BATCHES)
    return next((b for b in newest if (_checked(b).metadata or {}).get(LABEL) == token), None)


def submit(server: JudgeServer, record: Record) -> None:
    """Upload the requests of `record`, have them run, and write down where."""
    file = server.call(
        lambda client: client.files.create(
            file=("judge.jsonl", record.upload()), purpose="batch"
        )
    )
    tries = itertools.count()

    def create(client: openai.OpenAI) -> Batch:
        # a try whose reply was lost may have made the batch; a second one is paid twice
        if next(tries) and (batch := _search(client, token=record.token)):
            return batch
        return _checked(
            client.batches.create(
                input_file_id=file.id,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={LABEL: record.token},
            )
        )

    batch = server.call(create)
    record.save(batch.id, record.state()[1])
    log.info("Submitted batch %s", batch.id)


def find_submitted(server: JudgeServer, record: Record) -> bool:
    """Whether `record`, whose submission was cut short, did reach the server."""
    batch = server.call(functools.partial(_search, token=record.token))
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
    for _ in range(int(LONGEST_WAIT_S / poll_s) + 1):
        if batch_id is None or not record.exists():
            return None
        batch = server.call(lambda client: _checked(client.batches.retrieve(str(batch_id))))
        if batch.status in OVER:
            return batch
        if batch.request_counts:
            done, total = batch.request_counts.completed, batch.request_counts.total
            log.info("Batch %s is %s: %d of %d", batch_id, batch.status, done, total)
        time.sleep(poll_s)
    raise JudgeError(f"Batch {batch_id} is not over after two days; run again to wait on.")


def collect(
    server: JudgeServer, record: Record, batch: Batch, cache: LabelCache, ledger: Ledger
) -> None:
    """Keep the verdicts of a batch that is over in `cache`, and forget the batch.

    Raises
    ------
    JudgeError
        When the server refused the batch, or a request for good, or when no
        reply is a label.
    """
    if not record.exists():
        return  # another job was faster
    bodies, cost = record.bodies(), record.state()[1]
    verdicts, unanswered, refused = read_results(_lines(server, batch), set(bodies))
    verdicts = {
        key: verdict._replace(reply=server.redact(verdict.reply))
        for key, verdict in verdicts.items()
    }
    log.info("Batch %s is %s: %d verdicts", batch.id, batch.status, len(verdicts))
    try:
        check_labelled(verdicts)
    except JudgeError:
        record.remove()
        raise
    for key, verdict in verdicts.items():
        cache.put(key, verdict, bodies[key])
    record.remove()
    lost = len(bodies) - len(verdicts)
    model = next(iter(bodies.values()))["model"]
    ledger.add(model, -lost, -cost * lost / len(bodies), "not answered")
    if unanswered:
        log.warning("Failures that may pass: %s", server.redact(unanswered[0]))
    errors = [str(error.message) for error in (batch.errors.data or [])] if batch.errors else []
    if refused := refused or (["failed", *errors][-1:] if batch.status == "failed" else []):
        said = server.redact(refused[0])
        raise ServerError(
            f"The judge's server refused batch {batch.id} ({said}). Correct the cause (judge "
            "in the config) and run again.",
            said=said,
            code=None,
        )


def _checked(batch: object) -> Batch:
    if not isinstance(batch, Batch) or not batch.id or not batch.status:
        raise BadReplyError(f"not a batch: {batch!r:.200}")
    return batch


def _lines(server: JudgeServer, batch: Batch) -> Iterator[str]:
    for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
        content = server.call(functools.partial(_content, file_id=str(file_id)))
        yield from content.decode("utf-8", errors="replace").split("\n")


def _content(client: openai.OpenAI, *, file_id: str) -> bytes:
    return client.files.content(file_id).content

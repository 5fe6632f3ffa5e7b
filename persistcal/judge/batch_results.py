"""What a server says of a batch and its results, read: plain data, no network."""

import json
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

from persistcal.judge.prompt import asked_together
from persistcal.judge.reply import REFUSAL_CODES, BadReplyError, Reply, no_labels, read_reply

log = logging.getLogger(__name__)

LABEL = "persistcal"  # of a batch, with the token of its record


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

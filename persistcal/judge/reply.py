"""Read the replies of a judge, one or a batch of them, and keep them on disk."""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from persistcal.judge.prompt import asked_together
from persistcal.questions.labels import (
    LABELS,
    JudgeError,
    parse_label,
    parse_labels,
)
from persistcal.server.spending import REFUSAL_CODES, BadReplyError, Body, messages_of
from persistcal.store.replies import ReplyCache

log = logging.getLogger(__name__)


ENOUGH_TO_TELL = 20  # replies: when none of the first so many has a label, none will


class Reply(NamedTuple):
    """A judge's reply to one request, in its own words: a label per candidate, in order."""

    labels: tuple[str | None, ...]  # a missing label is decided by a person
    reason: str  # why a label is missing: "refusal" or "malformed"
    text: str


def no_labels(together: int | None, reason: str, text: str) -> Reply:
    """Return a reply without labels, so that a person labels all its candidates."""
    return Reply((None,) * (together or 1), reason, text)


def read_reply(parsed: Any, together: int | None = None) -> Reply:  # noqa: ANN401
    """Read the labels in a chat completion, or raise BadReplyError.

    `parsed` is the parsed JSON of a server. `together` is the number of candidates, if listed.
    """
    try:
        choice = parsed["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise BadReplyError("not a chat completion") from None
    words = next((part for part in (refusal, text) if part and isinstance(part, str)), "")
    if refusal or finish == "content_filter":
        return no_labels(together, "refusal", words)
    if not isinstance(text, str):
        return no_labels(together, "malformed", words)
    labels = parse_labels(text, together) if together else (parse_label(text),)
    return Reply(labels, "malformed" if None in labels else "", text)


def check_labelled(replies: Collection[Reply]) -> None:
    """Refuse the first `replies` of a judge when there are 20 or more and none has a label."""
    if len(replies) < ENOUGH_TO_TELL or any(any(reply.labels) for reply in replies):
        return
    text = next(iter(replies)).text
    raise JudgeError(
        f"None of the judge's first {len(replies)} replies is a label; one is {text!r:.200}. "
        "Check judge.model, judge.request and prompts.judge. None of these replies is kept."
    )


class Results(NamedTuple):
    """Replies of a batch by key, temporary failures, and refusals."""

    replies: dict[str, Reply]
    unanswered: list[str]
    refused: list[str]


def read_results(lines: Iterable[str], wanted: Collection[str]) -> Results:
    """Read the output and error lines of a batch, in any order.

    If two replies with one key have different labels, a person decides. Lines that are not
    JSON, or that belong to no `wanted` request, are ignored.
    """
    results = Results({}, [], [])
    for line in filter(str.strip, lines):
        try:
            row = json.loads(line)
            key = row["custom_id"]
            strange = "" if key in wanted else "a reply that was not asked for"
        except (ValueError, KeyError, TypeError, RecursionError):
            strange = "a line that is not readable"
        if strange:
            log.warning("The results of a batch contain %s", strange)
            continue
        together = asked_together(key)
        try:
            reply = _read_row(row, together, results)
        except (ValueError, OverflowError, TypeError, AttributeError, RecursionError) as bad:
            reply = no_labels(together, "malformed", f"{bad}: {line}")
        if reply is None:
            continue
        earlier = results.replies.setdefault(key, reply)
        if earlier.labels != reply.labels:
            conflict = f"two replies: {earlier.text} and {reply.text}"
            results.replies[key] = no_labels(together, "malformed", conflict)
    return results


def _read_row(row: dict[str, Any], together: int | None, results: Results) -> Reply | None:
    """Return the reply in a row of a batch's results; note a failure among `results`."""
    response = row.get("response") or {}
    body, status = response.get("body") or {}, int(response.get("status_code") or 0)
    if status == 200:
        return read_reply(body, together)
    error = row.get("error") or body.get("error") or {}
    error = error if isinstance(error, dict) else {"message": error}
    code, message = error.get("code"), f"{error.get('code')}: {error.get('message')}"
    if isinstance(code, str) and code in REFUSAL_CODES:
        return no_labels(together, "refusal", message)
    passes = status in (0, 408, 409, 429) or status >= 500
    (results.unanswered if passes else results.refused).append(message)
    return None


@dataclass(frozen=True)
class Replies:
    """The replies in the folder of a judge, shared by all jobs."""

    folder: str

    @property
    def _cache(self) -> ReplyCache:
        return ReplyCache(f"{self.folder}/cache")

    def get(self, key: str) -> Reply | None:
        """Return the reply with `key`, or None. A damaged reply is None with a warning."""
        try:
            if (entry := self._cache.get(key)) is None:
                return None
            labels = tuple(entry["labels"]) if "labels" in entry else (entry["label"],)
            reply = Reply(labels, str(entry["reason"]), str(entry["reply"]))
        except (ValueError, KeyError, TypeError):
            reply = Reply(("damaged",), "", "")
        is_known = all(label is None or label in LABELS for label in reply.labels)
        if is_known and len(reply.labels) == (asked_together(key) or 1):
            return reply
        path = self._cache.path(key)
        log.warning("%s is damaged; the candidates in it are judged again.", path)
        return None

    def missing(self, bodies: Mapping[str, Body]) -> dict[str, Body]:
        """Return the requests in `bodies` without a reply."""
        return {key: body for key, body in bodies.items() if self.get(key) is None}

    def put(self, replies: Mapping[str, Reply], bodies: Mapping[str, Body]) -> None:
        """Keep `replies` with the messages of the requests; raise if a reply cannot be kept."""
        failures = []
        for key, reply in replies.items():
            several = asked_together(key)
            labels = {"labels": reply.labels} if several else {"label": reply.labels[0]}
            content = {"reason": reply.reason, "reply": reply.text}
            try:
                asked = {"asked": messages_of(bodies[key])[-1]["content"]}
                self._cache.put(key, {**labels, **content, **asked})
            except Exception as error:
                failures.append(error)
        if failures and isinstance(failures[0], OSError):
            why = failures[0].strerror or failures[0]
            raise JudgeError(
                f"{len(failures)} replies of the judge cannot be kept in {self.folder} "
                f"({why}); make room there and run again."
            ) from failures[0]
        if failures:
            raise failures[0]

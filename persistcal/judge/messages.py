"""Requests to a judge model and its replies, as plain data."""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from persistcal.questions.labels import (
    LABELS,
    OWN_WORDS,
    JudgeError,
    Words,
    parse_label,
    parse_labels,
)
from persistcal.questions.templates import check_fields, fill
from persistcal.server.spending import (
    LIMITS,
    REFUSAL_CODES,
    Access,
    BadReplyError,
    Body,
    Budget,
    messages_of,
)
from persistcal.store.replies import ReplyCache, request_digest

log = logging.getLogger(__name__)

ONE, TOGETHER = "answer", "answers"  # fields of the prompt
LEAST_REPLY = 16  # tokens; some servers refuse a smaller limit
SPARE = {"max_output_tokens": 2}  # tokens of a list's limit beside those per candidate
ENOUGH_TO_TELL = 20  # replies: when none of the first so many has a label, none will


@dataclass(frozen=True)
class JudgeSettings(Access):
    """The section ``judge`` of a config, and the text of the prompt."""

    backend: str  # openai or openai_batch
    model: str
    prompt: str
    base_url: str
    request: Mapping[str, Any] = field(default_factory=dict)  # a field with None is left out
    poll_s: float = 60
    batch_requests: int = 50_000  # in the largest batch
    endpoint: str = "chat"  # or responses
    together: bool = False  # all candidates of a question in one request
    labels: Words = field(default_factory=lambda: OWN_WORDS)  # by the words of a reply
    currency: str = "USD"  # of the prices, for messages
    undecided: str = "stop"  # or go on, with answers that wait for a person "not_attempted"

    @property
    def budget(self) -> Budget:
        """Prices and ceilings."""
        return Budget(self.model, self, "judge", "Judging")


Asked = tuple[str, Sequence[str], str]  # question, references, answer
Label = tuple[str, str]  # label and who gave it


class Candidate(NamedTuple):
    """An answer to be labelled, its question, and the answers known to be right."""

    question: str
    references: tuple[str, ...]
    answer: str


def candidate_of(question: str, references: Iterable[str], answer: str) -> Candidate:
    """Return the candidate; repeated references and spaces inside the answer do not count."""
    return Candidate(question, tuple(dict.fromkeys(references)), " ".join(answer.split()))


def candidate_id(candidate: Candidate) -> str:
    """Identify `candidate` whichever judge is asked: 32 hexadecimal digits."""
    return request_digest(list(candidate))


def request_key(body: Body, together: int | None = None) -> str:
    """Return the key of a request, from model, prompt, candidates and options.

    The key of a request about several candidates `together` ends with their number, so
    that each job that reads its reply expects the right number of labels.
    """
    return request_digest(body) + ("" if together is None else f"-{together}")


def asked_together(key: str) -> int | None:
    """Return the number of candidates in the request with `key`; None for a single one."""
    _, _, number = key.partition("-")
    return int(number) if number else None


def requests_about(
    candidates: Iterable[Candidate], settings: JudgeSettings
) -> dict[str, tuple[Body, list[Candidate]]]:
    """Return the requests about distinct `candidates` by key, each with its candidates.

    A request is about one candidate or, `settings.together`, about all to a question.
    """
    groups: dict[tuple, list[Candidate]] = {}
    for candidate in candidates:
        key = candidate[:2] if settings.together else candidate
        groups.setdefault(key, []).append(candidate)
    requests = {}
    for group in groups.values():
        body = request_body(group, settings)
        requests[request_key(body, len(group) if settings.together else None)] = (body, group)
    return requests


def request_body(candidates: Sequence[Candidate], settings: JudgeSettings) -> Body:
    """Return the request that asks for the labels of `candidates`, answers to one question.

    There is one candidate or, with `settings.together`, a numbered list of several. A match
    with any reference counts.
    """
    question, references, answer = candidates[0]
    if not references:
        raise JudgeError(
            f"Question {question!r} has no reference answer to judge by; add one or "
            "exclude the question."
        )
    fields = {name: value for name, value in settings.request.items() if value is not None}
    fields = {"model": settings.model, "temperature": 0, **fields}
    listed = "\n".join(f"{i}. {c.answer}" for i, c in enumerate(candidates, start=1))
    place = TOGETHER if settings.together else ONE
    system, user = split_prompt(settings.prompt, place)
    values = {
        "question": question,
        "references": "\n".join(f"- {reference}" for reference in references),
        "references_line": str(list(references)) if references[1:] else references[0],
        place: listed if settings.together else answer,
    }
    filled = fill(user, values)
    limits = reply_limits(fields, len(candidates), together=settings.together)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": filled}]
    content = messages if system else messages[1:]
    name = "input" if settings.endpoint == "responses" else "messages"
    return {name: content, **fields, **limits}


def reply_limits(request: Mapping[str, Any], n: int, *, together: bool) -> dict[str, int]:
    """Return the limits of a reply about `n` candidates from those per candidate.

    A list's limit is at least 16 tokens. For the interface for responses it is 2 tokens above
    the sum over candidates, as in the paper's code: 4n - 1 + 3 with 4 per candidate.
    """
    limits = {name: request[name] for name in LIMITS if request.get(name) is not None}
    if not together:
        return limits
    return {
        key: max(limit * n + SPARE.get(key, 0), LEAST_REPLY) for key, limit in limits.items()
    }


def split_prompt(prompt: str, place: str = ONE) -> tuple[str, str]:
    """Split a prompt file at its line ``---`` into system message and user message.

    Without such a line it is the user message, and the system message is empty. Only the
    user message has fields: ``{question}``; ``{references}``, a line each, or
    ``{references_line}``, a text or a list of texts on one line; and `place`, which is
    ``{answer}`` or ``{answers}``.
    """
    system, line, user = prompt.partition("\n---\n")
    name = "The judge's prompt"
    if not line:
        system, user = "", prompt
    on_one_line = "{references_line}" in user and "{references}" not in user
    needed = ["question", "references_line" if on_one_line else "references"]
    try:
        check_fields(system, f"{name} above its line '---'", [])
        name = f"{name} below its line '---'" if line else name
        check_fields(user, name, [*needed, place])
    except ValueError as error:
        raise JudgeError(f"{error}.") from error
    return system.strip(), user.strip()


class Reply(NamedTuple):
    """A judge's reply to one request, in its own words: a label per candidate, in order."""

    labels: tuple[str | None, ...]  # a missing label is decided by a person
    reason: str  # why a label is missing: "refusal" or "malformed"
    text: str


def no_labels(together: int | None, reason: str, text: str) -> Reply:
    """Return a reply without labels, so that a person labels all its candidates."""
    return Reply((None,) * (together or 1), reason, text)


def read_labels(text: str, together: int | None, words: Words) -> tuple[str | None, ...]:
    """Return the labels in a reply about one candidate or about several `together`."""
    return parse_labels(text, together, words) if together else (parse_label(text, words),)


def read_reply(
    parsed: Any,  # noqa: ANN401
    together: int | None = None,
    words: Words = OWN_WORDS,
) -> Reply:
    """Read the labels in the JSON of a chat completion or response, or raise BadReplyError.

    `together` is the number of candidates, if listed.
    """
    try:
        text, refusal, filtered = (_of_response if "output" in parsed else _of_chat)(parsed)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise BadReplyError("neither a chat completion nor a response") from None
    reason = next((part for part in (refusal, text) if part and isinstance(part, str)), "")
    if refusal or filtered:
        return no_labels(together, "refusal", reason)
    if not isinstance(text, str):
        return no_labels(together, "malformed", reason)
    labels = read_labels(text, together, words)
    return Reply(labels, "malformed" if None in labels else "", text)


def _of_chat(parsed: dict[str, Any]) -> tuple[Any, Any, bool]:
    """Return the text of a chat completion, its refusal, and whether a filter ended it."""
    choice = sorted(parsed["choices"], key=lambda choice: choice.get("index", 0))[0]
    message, finish = choice["message"], choice.get("finish_reason")
    return message.get("content"), message.get("refusal"), finish == "content_filter"


def _of_response(parsed: dict[str, Any]) -> tuple[Any, Any, bool]:
    """Return the same of a response; its messages are among other items."""
    parts = [
        part
        for item in parsed["output"]
        if item.get("type") == "message"
        for part in item["content"]
    ]
    texts = [part["text"] for part in parts if part.get("type") == "output_text"]
    refusals = [part["refusal"] for part in parts if part.get("type") == "refusal"]
    details = parsed.get("incomplete_details") or {}
    filtered = details.get("reason") == "content_filter"
    return "".join(texts) if texts else None, next(iter(refusals), None), filtered


def check_labelled(replies: Collection[Reply]) -> None:
    """Refuse the first `replies` of a judge when there are 20 or more and none has a label."""
    if len(replies) < ENOUGH_TO_TELL or any(any(reply.labels) for reply in replies):
        return
    text = next(iter(replies)).text
    raise JudgeError(
        f"None of the judge's first {len(replies)} replies is a label; one is {text!r:.200}. "
        "Check judge.model, judge.request, judge.labels and prompts.judge. None of these "
        "replies is kept."
    )


class Results(NamedTuple):
    """Replies of a batch by key, temporary failures, and refusals."""

    replies: dict[str, Reply]
    unanswered: list[str]
    refused: list[str]


def read_results(
    lines: Iterable[str], wanted: Collection[str], words: Words = OWN_WORDS
) -> Results:
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
            reply = _read_row(row, together, words, results)
        except (ValueError, OverflowError, TypeError, AttributeError, RecursionError) as bad:
            reply = no_labels(together, "malformed", f"{bad}: {line}")
        if reply is None:
            continue
        earlier = results.replies.setdefault(key, reply)
        if earlier.labels != reply.labels:
            conflict = f"two replies: {earlier.text} and {reply.text}"
            results.replies[key] = no_labels(together, "malformed", conflict)
    return results


def _read_row(
    row: dict[str, Any], together: int | None, words: Words, results: Results
) -> Reply | None:
    """Return the reply in a row of a batch's results; note a failure among `results`."""
    response = row.get("response") or {}
    body, status = response.get("body") or {}, int(response.get("status_code") or 0)
    if status == 200 or (not status and body and "error" not in body):
        return read_reply(body, together, words)
    error = row.get("error") or body.get("error") or {}
    error = error if isinstance(error, dict) else {"message": error}
    code, message = error.get("code"), f"{error.get('code')}: {error.get('message')}"
    if isinstance(code, str) and code in REFUSAL_CODES:
        return no_labels(together, "refusal", message)
    passes = status in (0, 408, 409, 429) or status >= 500
    (results.unanswered if passes else results.refused).append(message)
    return None


class Replies:
    """The replies in the folder of a judge, shared by all jobs.

    Missing labels are read again from the stored texts with `words`, so that new words of a
    reply need no new request.
    """

    def __init__(self, folder: str, words: Words = OWN_WORDS) -> None:
        self._folder, self.words = folder, words
        self._cache = ReplyCache(f"{folder}/cache")

    def get(self, key: str) -> Reply | None:
        """Return the reply with `key`, or None without a whole one."""
        together = asked_together(key)

        def read(entry: Any) -> Reply | None:  # noqa: ANN401
            labels = tuple(entry["labels"]) if "labels" in entry else (entry["label"],)
            reply = Reply(labels, str(entry["reason"]), str(entry["reply"]))
            if len(labels) != (together or 1) or not {*labels} <= {None, *LABELS}:
                return None
            if reply.reason != "malformed":
                return reply
            found = read_labels(reply.text, together, self.words)
            labels = tuple(a or b for a, b in zip(labels, found, strict=True))
            return Reply(labels, "malformed" if None in labels else "", reply.text)

        return self._cache.get(key, read, "the candidates in it are judged again")

    def present(self, keys: Iterable[str]) -> dict[str, Reply]:
        """Return the replies to those requests that have one."""
        replies = {key: self.get(key) for key in keys}
        return {key: reply for key, reply in replies.items() if reply}

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
                prompt = {"asked": messages_of(bodies[key])[-1]["content"]}
                self._cache.put(key, {**labels, **content, **prompt})
            except Exception as error:
                failures.append(error)
        if failures and isinstance(failures[0], OSError):
            why = failures[0].strerror or failures[0]
            raise JudgeError(
                f"{len(failures)} replies of the judge cannot be kept in {self._folder} "
                f"({why}); make room there and run again."
            ) from failures[0]
        if failures:
            raise failures[0]

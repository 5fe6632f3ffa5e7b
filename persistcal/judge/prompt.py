"""Requests to a judge model, as a study wants them: plain data, no network."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from persistcal.questions.labels import JudgeError
from persistcal.questions.templates import check_fields
from persistcal.server.spending import LIMITS, Body, Budget

PLACES = ("{question}", "{references}")
ONE, TOGETHER = "{answer}", "{answers}"


@dataclass(frozen=True)
class JudgeSettings:
    """The section ``judge`` of a config, and the text of the prompt; prices per 10⁶ tokens."""

    backend: str  # openai or openai_batch
    model: str
    prompt: str
    base_url: str
    max_requests: int  # these two are ceilings for the whole study
    max_cost: float
    price_input: float
    price_output: float
    api_key_env: str = "OPENAI_API_KEY"  # the environment variable with the key
    request: Mapping[str, Any] = field(default_factory=dict)  # a field with None is left out
    concurrency: int = 16  # requests on their way at once, over all jobs
    timeout_s: float = 60
    retries: int = 8
    poll_s: float = 60
    batch_requests: int = 50_000  # in the largest batch
    first_wait_s: float = 1
    together: bool = False  # all candidates of a question in one request
    undecided: str = "stop"  # or go on, with answers that wait for a person "not_attempted"

    @property
    def budget(self) -> Budget:
        """Prices and ceilings."""
        prices = self.model, self.price_input, self.price_output
        return Budget(*prices, self.max_requests, self.max_cost, "judge", "Judging")


class Candidate(NamedTuple):
    """An answer to be labelled, its question, and the answers known to be right."""

    question: str
    references: tuple[str, ...]
    answer: str


def candidate_of(question: str, references: Iterable[str], answer: str) -> Candidate:
    """Return the candidate; repeated references and spaces inside the answer do not count."""
    return Candidate(question, tuple(dict.fromkeys(references)), " ".join(answer.split()))


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def candidate_id(candidate: Candidate) -> str:
    """Identify `candidate` whichever judge is asked: 32 hexadecimal digits."""
    return _digest(list(candidate))


def request_key(body: Body, together: int | None = None) -> str:
    """Return the key of a request, from model, prompt, candidates and options.

    The key of a request about several candidates `together` ends with their number, so
    that each job that reads its reply expects the right number of labels.
    """
    return _digest(body) if together is None else f"{_digest(body)}-{together}"


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
        asked = candidate[:2] if settings.together else candidate
        groups.setdefault(asked, []).append(candidate)
    requests = {}
    for group in groups.values():
        body = request_body(group, settings)
        requests[request_key(body, len(group) if settings.together else None)] = (body, group)
    return requests


def request_body(candidates: Sequence[Candidate], settings: JudgeSettings) -> Body:
    """Return the request that asks for the labels of `candidates`, answers to one question.

    There is one candidate or, with `settings.together`, a numbered list of several.
    References are listed one per line; a match with any reference counts. Limits of the
    reply's length hold per candidate.
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
        "{question}": question,
        "{references}": "\n".join(f"- {reference}" for reference in references),
        place: listed if settings.together else answer,
    }
    limits = {name: fields[name] * len(candidates) for name in LIMITS if name in fields}
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": _fill(user, values)},
    ]
    return {"messages": messages, **fields, **limits}


def split_prompt(prompt: str, place: str = ONE) -> tuple[str, str]:
    """Split a prompt file at its line ``---`` into system message and user message.

    Only the user message has fields: ``{question}``, ``{references}`` and `place`, which is
    ``{answer}`` or ``{answers}``.
    """
    first, line, second = prompt.partition("\n---\n")
    if not line:
        raise JudgeError("The judge's prompt has no line '---' between its two parts; add it.")
    try:
        for text, side, fields in ((first, "above", ()), (second, "below", (*PLACES, place))):
            needed = [name.strip("{}") for name in fields]
            check_fields(text, f"The judge's prompt {side} its line '---'", needed)
    except ValueError as error:
        raise JudgeError(f"{error}.") from error
    return first.strip(), second.strip()


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in `values` in one pass, because a value can contain the name of a field."""
    places = re.compile("|".join(map(re.escape, values)))
    return places.sub(lambda match: values[match[0]], text)

"""What is asked of a judge model, and how its reply is read: plain data, no network."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from persistcal.judge.labels import JudgeError, parse_label, parse_labels

PLACES = ("{question}", "{references}")
ONE, TOGETHER = "{answer}", "{answers}"
LIMITS = ("max_completion_tokens", "max_tokens")
REFUSAL_CODES = {"content_filter", "content_policy_violation"}
ENOUGH_TO_TELL = 20  # replies: when none of the first so many has a label, none will

Body = dict[str, Any]


class BadReplyError(ValueError):
    """What a server replied is not what its interface promises."""


class Candidate(NamedTuple):
    """What a judge labels: an answer, the question, and the answers known to be right."""

    question: str
    references: tuple[str, ...]
    answer: str


class Reply(NamedTuple):
    """What a judge replied to one request.

    Attributes
    ----------
    labels : tuple of (str or None)
        A label of `persistcal.judge.labels.LABELS` per candidate of the request,
        in its order; None where a person has to decide.
    reason : {"", "refusal", "malformed"}
        Why a label is missing.
    text : str
        The judge's own words.
    """

    labels: tuple[str | None, ...]
    reason: str
    text: str


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
    """Identify a request by all that it says: model, prompt, candidates and options.

    The key of a request about several candidates `together` ends in their
    number, so that whoever collects its reply, now or after a restart, knows
    how many labels to read.
    """
    return _digest(body) if together is None else f"{_digest(body)}-{together}"


def asked_together(key: str) -> int | None:
    """Return how many candidates the request under `key` asks about together, if it does."""
    _, _, number = key.partition("-")
    return int(number) if number else None


def split_prompt(prompt: str, place: str = ONE) -> tuple[str, str]:
    """Split a prompt file into the system message and the user message.

    A line ``---`` parts them; the user message names each of ``{question}``,
    ``{references}`` and `place`, which is ``{answer}`` or ``{answers}``.

    Raises
    ------
    JudgeError
        When the line or a place is missing.
    """
    system, line, user = prompt.partition("\n---\n")
    if not line:
        raise JudgeError(
            "The judge's prompt has no line '---'; put one between the system message and the "
            "user message."
        )
    for name in (*PLACES, place):
        if name not in user:
            raise JudgeError(f"The judge's prompt lacks {name} below its line '---'; add it.")
    return system.strip(), user.strip()


def request_body(
    candidates: Sequence[Candidate],
    *,
    model: str,
    prompt: str,
    options: Mapping[str, Any],
    together: bool = False,
) -> Body:
    """Return the chat completion request that asks for the labels of `candidates`.

    Parameters
    ----------
    candidates : sequence of Candidate
        Answers to one question: one, or several if `together`, which are listed
        as ``1. …``, a line each. References are listed one per line; a match
        with any of them counts.
    model : str
        Name of the judge model.
    prompt : str
        See `split_prompt`.
    options : mapping
        Further fields of the request; those that are None are left out. Those that
        limit the length of the reply hold per candidate.
    together : bool, default=False
        Ask about all `candidates` at once.

    Raises
    ------
    JudgeError
        When the candidates' question has no reference or the prompt is unfit.
    """
    question, references, answer = candidates[0]
    if not references:
        raise JudgeError(
            f"Question {question!r} has no reference answer to judge by; add one or "
            "exclude the question."
        )
    place = TOGETHER if together else ONE
    system, user = split_prompt(prompt, place)
    listed = "\n".join(f"{i}. {c.answer}" for i, c in enumerate(candidates, start=1))
    values = {
        "{question}": question,
        "{references}": "\n".join(f"- {reference}" for reference in references),
        place: listed if together else answer,
    }
    places = re.compile("|".join(map(re.escape, values)))
    fields = {name: value for name, value in options.items() if value is not None}
    limits = {name: fields[name] * len(candidates) for name in LIMITS if name in fields}
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": places.sub(lambda match: values[match[0]], user)},
        ],
        "temperature": 0,
        **fields,
        **limits,
    }


def no_labels(together: int | None, reason: str, text: str) -> Reply:
    """Return the reply that leaves every candidate of its request to a person."""
    return Reply((None,) * (together or 1), reason, text)


def read_completion(completion: object, together: int | None = None) -> Reply:
    """Read the labels from a chat completion, as parsed from JSON.

    Parameters
    ----------
    completion : object
        Whatever a server sent.
    together : int, optional
        How many candidates were asked about together; see `asked_together`.

    Raises
    ------
    BadReplyError
        When it is no chat completion at all.
    """
    try:
        choice = completion["choices"][0]  # type: ignore[index]
        message = choice["message"]
        refusal, text = message.get("refusal"), message.get("content")
        finish = choice.get("finish_reason")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise BadReplyError("not a chat completion") from None
    words = next((said for said in (refusal, text) if said and isinstance(said, str)), "")
    if refusal or finish == "content_filter":
        return no_labels(together, "refusal", words)
    if not isinstance(text, str):
        return no_labels(together, "malformed", words)
    labels = parse_labels(text, together) if together else (parse_label(text),)
    return Reply(labels, "malformed" if None in labels else "", text)


def check_labelled(replies: Collection[Reply]) -> None:
    """Refuse the first `replies` of a judge that does not give labels at all.

    Raises
    ------
    JudgeError
        When there are 20 or more and none has a label.
    """
    if len(replies) < ENOUGH_TO_TELL or any(any(reply.labels) for reply in replies):
        return
    text = next(iter(replies)).text
    raise JudgeError(
        f"None of the judge's first {len(replies)} replies is a label; one is {text!r:.200}. "
        "Check judge.model, judge.request and prompts.judge. None of these replies is kept."
    )

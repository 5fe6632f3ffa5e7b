"""What is asked of a judge model, and how its reply is read: plain data, no network."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from persistcal.judge.labels import JudgeError, Verdict, parse_label

PLACES = ("{question}", "{references}", "{answer}")
REFUSAL_CODES = {"content_filter", "content_policy_violation"}
LONGEST_REPLY = 500  # characters of a reply that are worth keeping
ENOUGH_TO_TELL = 20  # replies: when none of the first so many is a label, none will be

Body = dict[str, Any]


class BadReplyError(ValueError):
    """A server's reply is not what its interface promises."""


class Candidate(NamedTuple):
    """What a judge labels: an answer, the question, and the answers known to be right."""

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


def request_key(body: Body) -> str:
    """Identify a request by all that it says: model, prompt, candidate and options."""
    return _digest(body)


def split_prompt(prompt: str) -> tuple[str, str]:
    """Split a prompt file into the system message and the user message.

    A line ``---`` parts them; the user message names each of ``{question}``,
    ``{references}`` and ``{answer}``.

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
    for place in PLACES:
        if place not in user:
            raise JudgeError(f"The judge's prompt lacks {place} below its line '---'; add it.")
    return system.strip(), user.strip()


def request_body(
    candidate: Candidate, *, model: str, prompt: str, options: Mapping[str, Any]
) -> Body:
    """Return the chat completion request that asks for the label of `candidate`.

    Parameters
    ----------
    candidate : Candidate
        References are listed one per line; a match with any of them counts.
    model : str
        Name of the judge model.
    prompt : str
        See `split_prompt`.
    options : mapping
        Further fields of the request; those that are None are left out.

    Raises
    ------
    JudgeError
        When the candidate's question has no reference or the prompt is unfit.
    """
    if not candidate.references:
        raise JudgeError(
            f"Question {candidate.question!r} has no reference answer to judge by; add one or "
            "exclude the question."
        )
    system, user = split_prompt(prompt)
    values = {
        "{question}": candidate.question,
        "{references}": "\n".join(f"- {reference}" for reference in candidate.references),
        "{answer}": candidate.answer,
    }
    places = re.compile("|".join(map(re.escape, PLACES)))
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": places.sub(lambda place: values[place[0]], user)},
        ],
        "temperature": 0,
        **{name: value for name, value in options.items() if value is not None},
    }


def read_completion(completion: object) -> Verdict:
    """Read the verdict from a chat completion, as parsed from JSON.

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
        raise BadReplyError(f"not a chat completion: {completion!r:.{LONGEST_REPLY}}") from None
    reply = str(refusal or text or "")[:LONGEST_REPLY]
    if refusal or finish == "content_filter":
        return Verdict(None, "refusal", reply)
    label = parse_label(text) if isinstance(text, str) else None
    return Verdict(label, "" if label else "malformed", reply)


def check_labelled(verdicts: Mapping[str, Verdict]) -> None:
    """Refuse the first `verdicts` of a judge that does not give labels at all.

    Raises
    ------
    JudgeError
        When there are 20 or more and none has a label.
    """
    if len(verdicts) < ENOUGH_TO_TELL or any(verdict.label for verdict in verdicts.values()):
        return
    reply = next(iter(verdicts.values())).reply
    raise JudgeError(
        f"None of the judge's first {len(verdicts)} replies is a label; one is {reply!r:.200}. "
        "Check judge.model, judge.request and prompts.judge. None of these replies is kept."
    )

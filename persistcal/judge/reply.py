"""How a judge's reply is read: plain data, no network."""

from collections.abc import Collection
from typing import Any, NamedTuple

from persistcal.judge.labels import LETTERS, WORDS, JudgeError, parse_label, parse_labels

REFUSAL_CODES = {"content_filter", "content_policy_violation"}
ENOUGH_TO_TELL = 20  # replies: when none of the first so many has a label, none will


class BadReplyError(ValueError):
    """What a server replied is not what its interface promises."""


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


def no_labels(together: int | None, reason: str, text: str) -> Reply:
    """Return the reply that leaves every candidate of its request to a person."""
    return Reply((None,) * (together or 1), reason, text)


def read_reply(said: Any, together: int | None = None) -> Reply:  # noqa: ANN401
    """Read the labels, words of a chat completion or letters of a response.

    Parameters
    ----------
    said : object
        Whatever a server sent, as parsed from JSON.
    together : int, optional
        How many candidates were asked about together; see
        `persistcal.judge.prompt.asked_together`.

    Raises
    ------
    BadReplyError
        When it is neither, or a response that failed.
    """
    try:
        in_chat = "choices" in said
        text, refusal, finish = _of_completion(said) if in_chat else _of_response(said)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise BadReplyError("not a chat completion or response") from None
    words = next((said for said in (refusal, text) if said and isinstance(said, str)), "")
    if refusal or finish == "content_filter":
        return no_labels(together, "refusal", words)
    if not isinstance(text, str):
        return no_labels(together, "malformed", words)
    stand_for = WORDS if in_chat else LETTERS
    labels: tuple[str | None, ...] = (parse_label(text, stand_for),)
    if together:
        labels = parse_labels(text, together, stand_for)
    return Reply(labels, "malformed" if None in labels else "", text)


def _of_completion(said: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401
    """Return the words of a chat completion, those of a refusal, and why it ended."""
    choice = said["choices"][0]
    message = choice["message"]
    return message.get("content"), message.get("refusal"), choice.get("finish_reason")


def _of_response(said: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401
    """Return the same of a response; what a model thought aloud is none of its words."""
    if said.get("status") == "failed":
        raise BadReplyError("a response that failed")
    messages = [item for item in said["output"] if item["type"] == "message"]
    parts = [part for message in messages for part in message["content"]]
    words = {
        kind: "".join(part[kind] for part in parts if kind in part)
        for kind in ("text", "refusal")
    }
    finish = (said.get("incomplete_details") or {}).get("reason")
    return words["text"] if parts else None, words["refusal"], finish


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

"""Errors of servers, and API keys kept out of them."""

import html
import json
import re
import unicodedata
import urllib.parse

KEY_SHAPE = re.compile(r"\bsk-[\w*.-]+")  # also the masked form that servers quote


REFUSAL_CODES = {"content_filter", "content_policy_violation"}


PIECE = 8  # characters: so long a piece of the key is hidden too


class ServerError(RuntimeError):
    """Requests cannot be sent, paid or answered; the message says what a person can do.

    `said` and `code` are the server's words and its name for the failure, if it was asked.
    """

    def __init__(self, message: str, *, said: str = "", code: str = "") -> None:
        super().__init__(message)
        self.said = said
        self.code = code


class UnreadableError(ServerError):
    """The server kept sending what its interface does not promise."""


class BadReplyError(ValueError):
    """A server's reply is not what its interface promises."""


class NoReplyError(Exception):
    """The whole of a reply did not come in time."""


def check_key(api_key: str, variable: str, *, section: str) -> None:
    """Refuse a key that is empty or that no request could carry, without telling it."""
    if not api_key:
        raise ServerError(
            f"The environment variable {variable} is empty; put the {section}'s key into it "
            "(any text for a server without keys)."
        )
    for place, character in enumerate(api_key, start=1):
        if not (character.isascii() and character.isprintable()):
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise ServerError(
                f"The environment variable {variable} cannot be sent as a key: its character "
                f"{place} is {name}; copy the key again without it."
            )


def redact(text: str, secret: str) -> str:
    """Return `text` without `secret`, in the forms in which servers quote it.

    Hidden are the secret, its forms in addresses, JSON and HTML, every piece of
    it of eight characters or more (servers cut what they quote), and whatever
    else looks like a key.

    Examples
    --------
    >>> redact("Bearer 0123456789abcdef, or 0123456789…", "0123456789abcdef")
    'Bearer [key], or [key]…'
    """
    quoted = urllib.parse.quote(secret, safe="")
    forms = {secret, quoted, json.dumps(secret)[1:-1], html.escape(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "[key]")
    pieces = {secret[i : i + PIECE] for i in range(len(secret) - PIECE + 1)}
    hidden = [False] * len(text)
    for i in range(len(text) - PIECE + 1):
        if text[i : i + PIECE] in pieces:
            hidden[i : i + PIECE] = [True] * PIECE
    marked = "".join(
        character if not hide else "[key]" if not (i and hidden[i - 1]) else ""
        for i, (character, hide) in enumerate(zip(text, hidden, strict=True))
    )
    return KEY_SHAPE.sub("[key]", marked)


def public_address(base_url: str) -> str:
    """Return `base_url` without user name, password and query, for messages."""
    parts = urllib.parse.urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

"""Define the errors of servers, and remove API keys from their messages."""

import html
import json
import re
import unicodedata
import urllib.parse

KEY_SHAPE = re.compile(r"\bsk-[\w*.-]+")  # also the masked form that servers quote


REFUSAL_CODES = {"content_filter", "content_policy_violation"}


PIECE = 8  # characters; shorter pieces of the key are not hidden


class ServerError(RuntimeError):
    """Requests cannot be sent, paid or answered; the message contains the remedy.

    `reply` and `code` are the server's message and error code, or empty without a reply.
    """

    def __init__(self, message: str, *, reply: str = "", code: str = "") -> None:
        super().__init__(message)
        self.reply = reply
        self.code = code


class UnreadableError(ServerError):
    """The server's replies violate its interface even after retries."""


class BadReplyError(ValueError):
    """A server's reply violates its interface."""


class NoReplyError(Exception):
    """A complete reply did not arrive in time."""


def check_key(api_key: str, variable: str, *, section: str) -> None:
    """Raise a ServerError, which does not show the key, if a key is empty or cannot be sent."""
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
    """Return `text` with ``[key]`` in place of `secret` in each form that servers quote.

    The forms are the secret itself, its encodings in URLs, JSON and HTML, and its pieces of at
    least eight characters, because servers truncate quotes. Other texts that look like keys
    are hidden too.

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

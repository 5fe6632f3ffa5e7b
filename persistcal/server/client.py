"""Send requests to an OpenAI-compatible server with retries, limits and hidden secrets."""

import contextlib
import email.utils
import html
import json
import logging
import math
import re
import threading
import time
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import httpx2
import openai
import tenacity

from persistcal.server.spending import (
    REFUSAL_CODES,
    Access,
    BadReplyError,
    Body,
    Bookings,
    Budget,
    NoReplyError,
    ServerError,
    UnreadableError,
    endpoint_of,
)
from persistcal.store.replies import Ledger

log = logging.getLogger(__name__)

KEY_SHAPE = re.compile(r"\bsk-[\w*.-]+")  # also the masked form that servers quote
PIECE = 8  # characters; shorter pieces of the key are not hidden
LONGEST_BACKOFF_S = 60
LONGEST_RETRY_AFTER_S = 600
LONGEST_TRANSFER_S = 3600  # for files of a batch
LARGEST_REPLY = 10_000_000  # bytes
LARGEST_RESULTS = 500_000_000  # bytes, for a batch of 50,000
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
LONGEST_QUOTE = 500  # characters of a server's message

Result = TypeVar("Result")


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
    runs = groupby(zip(hidden, text, strict=True), key=lambda marked: marked[0])
    parts = ["[key]" if hide else "".join(c for _, c in run) for hide, run in runs]
    return KEY_SHAPE.sub("[key]", "".join(parts))


def public_address(base_url: str) -> str:
    """Return `base_url` without user name, password and query, for messages."""
    parts = urllib.parse.urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def retry_after_s(error: BaseException | None) -> float | None:
    """Return the seconds in a server's Retry-After header, or None."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    delay = headers.get("retry-after", "")
    for text, unit_s in ((headers.get("retry-after-ms", ""), 0.001), (delay, 1)):
        with contextlib.suppress(ValueError):
            if math.isfinite(wait := float(text) * unit_s):
                return max(0.0, wait)
    with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(delay).timestamp() - time.time())
    return None


def is_transient(error: BaseException) -> bool:
    """Return whether a retry can help.

    It can after time-outs, lost connections, unreadable replies and the status codes 408, 409,
    429 and 5xx. It cannot after a spent quota (also 429) or a Retry-After above ten minutes.
    """
    if isinstance(error, openai.APIStatusError):
        busy = error.status_code in (408, 409, 429) or error.status_code >= 500
        wait = retry_after_s(error) or 0
        return busy and error.code != "insufficient_quota" and wait <= LONGEST_RETRY_AFTER_S
    return isinstance(error, openai.APIConnectionError | BadReplyError | NoReplyError)


def in_json(read: Callable[[Any], Result]) -> Callable[[bytes], Result]:
    """Return a function that parses bytes as JSON and passes the value to `read`.

    If either fails, it raises a BadReplyError that quotes the reply.
    """

    def parse_and_read(content: bytes) -> Result:
        try:
            return read(json.loads(content))
        except BadReplyError as error:
            why = str(error)
        except (ValueError, RecursionError):
            why = "not JSON"
        raise BadReplyError(f"{why}: {content.decode(errors='replace')}")

    return parse_and_read


class _Bounded(httpx2.SyncByteStream):
    """Stream of a reply's bytes with limits on their number and time."""

    def __init__(self, stream: httpx2.SyncByteStream, most: int, longest_s: float) -> None:
        self._stream, self._most = stream, most
        self._deadline = time.monotonic() + longest_s

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._stream:
            size += len(part)
            if size > self._most:
                raise BadReplyError(f"a reply of more than {self._most} bytes")
            if time.monotonic() > self._deadline:
                raise NoReplyError
            yield part

    def close(self) -> None:
        self._stream.close()


def _call_within(longest_s: float, function: Callable[[], Result]) -> Result:
    """Return ``function()``, or raise NoReplyError after `longest_s` seconds.

    A socket's time-out is not enough, because it restarts at each byte.
    """
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcome.result(longest_s)
    except TimeoutError:
        if outcome.done():
            raise
        raise NoReplyError(f"no whole reply within {longest_s:g} s") from None


class ModelServer:
    """Client of an OpenAI-compatible server at an address up to and including ``/v1``.

    The library's own retries are switched off: they give up on a Retry-After above two minutes,
    wait too short otherwise, and retry after a spent quota but not after a broken reply.

    Messages name the `section` of the config with these settings, and use `kept` as a word for
    the replies that are kept after a failure. No message or log contains the key.
    """

    def __init__(self, base_url: str, access: Access, *, section: str, kept: str) -> None:
        self._api_key = api_key = access.api_key
        check_key(api_key, access.api_key_env, section=section)
        self._address = redact(public_address(base_url), api_key)
        if set(base_url) & set("@?#"):
            raise ServerError(
                f"{section}.base_url ({self._address}) holds a password, query or fragment; "
                f"remove it and put the key into the variable that {section}.api_key_env names."
            )
        for library in ("httpcore2", "httpx2", "openai"):  # they log addresses and headers
            logging.getLogger(library).setLevel(logging.WARNING)
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=api_key,
            timeout=access.timeout_s,
            max_retries=0,
            # Uncompressed, so that a limit on bytes also limits memory.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultHttpxClient(
                event_hooks={"request": [self._count], "response": [self._bound]}
            ),
        )
        self.bookings: Bookings | None = None  # for requests that are paid one by one
        self._timeout_s = access.timeout_s
        self._retries = access.retries
        self._backoff = tenacity.wait_exponential_jitter(
            initial=access.first_wait_s, max=LONGEST_BACKOFF_S, jitter=access.first_wait_s
        )
        self._stop = threading.Event()
        self._section, self._kept = section, kept

    def _count(self, _: httpx2.Request) -> None:
        if self.bookings:
            self.bookings.use_one()

    def _bound(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise BadReplyError("a compressed reply, which was not asked for")
        file = response.request.url.path.endswith("/content")
        response.encoding = "utf-8"
        response.stream = _Bounded(
            response.stream,  # type: ignore[arg-type]
            LARGEST_RESULTS if file else LARGEST_REPLY,
            LONGEST_TRANSFER_S if file else self._timeout_s,
        )

    def quote(self, text: str) -> str:
        """Return the beginning of a server's message without secrets.

        Secrets are removed before the text is truncated.
        """
        start = text[: 20 * LONGEST_QUOTE + 4 * len(self._api_key)]
        readable = redact(start, self._api_key).encode("utf-8", errors="replace").decode()
        return readable[:LONGEST_QUOTE]

    def _wait(self, state: tenacity.RetryCallState) -> float:
        delay = retry_after_s(state.outcome.exception()) if state.outcome else None
        return self._backoff(state) if delay is None else delay

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise NoReplyError("not repeated, because another request has failed")

    def send(
        self, method: str, path: str, read: Callable[[bytes], Result], **content: object
    ) -> Result:
        """Send one request once and return ``read(reply)``.

        `method` is get or post, and `content` is passed to `openai.OpenAI.post`. `read` must
        raise BadReplyError if the reply has the wrong form.
        """
        ask, options = getattr(self._client, method), content.pop("options", {})
        # A file of a batch can be at another address, but prompts are never redirected.
        options = {"follow_redirects": method == "get", **options}  # type: ignore[dict-item]
        try:
            reply = ask(path, cast_to=httpx2.Response, options=options, **content)
        except openai.APIConnectionError as error:
            if self.bookings and isinstance(error.__cause__, UNSENT):
                self.bookings.give_back()
            raise
        except openai.APIStatusError as error:
            if error.response.is_redirect:
                address = public_address(error.response.headers["location"])
                raise ServerError(
                    f"The {self._section}'s server at {self._address} redirects requests to "
                    f"{self.quote(address)}, and prompts go to no other address; if they "
                    f"should, set {self._section}.base_url to the new one."
                ) from None
            raise
        return read(reply.content)

    def stop(self) -> None:
        """Stop all retries."""
        self._stop.set()

    def call(self, request: Callable[[], Result], *, longest_s: float | None = None) -> Result:
        """Return ``request()``, which uses `send`; retry it after transient failures.

        Each attempt can take `longest_s` seconds, by default `timeout_s`. Errors do not contain
        the key.
        """
        patiently = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_transient),
            stop=tenacity.stop_after_attempt(self._retries + 1),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )

        def attempt() -> Result:
            try:
                return _call_within(longest_s or self._timeout_s, request)
            except openai.APIConnectionError as error:
                cause = error.__cause__
                raise (
                    cause if isinstance(cause, BadReplyError | ServerError) else error
                ) from None

        kind, status = ServerError, 0
        try:
            return patiently(attempt)
        except BadReplyError as error:
            kind, reply, code = UnreadableError, self.quote(str(error)), ""
        except (openai.OpenAIError, NoReplyError) as error:
            reply, name = self.quote(str(error)), getattr(error, "code", None)
            code = name if isinstance(name, str) else ""
            status = getattr(error, "status_code", 0)
        raise kind(
            f"The {self._section}'s server at {self._address} failed ({reply}). {self._kept} "
            f"so far are kept: correct the cause ({self._section} in the config, or the key) "
            "and run again.",
            reply=reply,
            code=code,
            status=status,
        )

    def complete(
        self, body: Body, read: Callable[[Any], Result], refused: Callable[[str], Result]
    ) -> Result:
        """Send the request `body` and return what `read` makes of the reply's JSON.

        If the server refuses the content, return what `refused` makes of its message.
        """
        send = partial(self.send, "post", endpoint_of(body), in_json(read), body=body)
        try:
            return self.call(send)
        except ServerError as error:
            if error.code in REFUSAL_CODES:
                return refused(error.reply)
            raise


def ask_at_once(
    bodies: Mapping[str, Body],
    ask_one: Callable[[str, Body], Result],
    keep: Callable[[str, Result], None],
    *,
    server: ModelServer,
    budget: Budget,
    ledger: Ledger,
) -> None:
    """Call `ask_one` for each of `bodies` concurrently, and pass each reply to `keep`.

    All requests are booked before the first is sent, and `server` books its retries. After a
    failure of the server or of `keep`, no further request is sent. The failure is raised after
    all pending replies are kept, because they are paid for. `keep` is called in the thread
    that received the reply, so an interrupt of the main thread cannot lose it.
    """
    if not bodies:
        return
    server.bookings = bookings = Bookings(budget, ledger, bodies.values())
    replied: list[str] = []

    def ask_and_keep(key: str, body: Body) -> None:
        reply = ask_one(key, body)
        replied.append(key)
        keep(key, reply)

    def give_up() -> None:
        server.stop()
        for future in asked:
            future.cancel()

    asked: list[Future[None]] = []
    failure: BaseException | None = None
    try:
        with ThreadPoolExecutor(budget.access.concurrency) as pool:
            asked += [pool.submit(ask_and_keep, key, body) for key, body in bodies.items()]
            try:
                for done in as_completed(asked):
                    if not done.cancelled() and (error := done.exception()):
                        failure = failure or error
                        give_up()
            finally:
                give_up()
        if failure:
            raise failure
    finally:
        bookings.close()
        log.info("%s replied to %d of %d requests", budget.model, len(replied), len(bodies))

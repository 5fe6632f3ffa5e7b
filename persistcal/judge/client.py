"""Ask a judge behind an OpenAI-compatible server, patiently and without telling the key."""

import contextlib
import email.utils
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import openai
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential_jitter,
)

from persistcal.judge.labels import JudgeError, Verdict
from persistcal.judge.requests import (
    LONGEST_REPLY,
    REFUSAL_CODES,
    BadReplyError,
    Body,
    read_completion,
)

BAD_REPLY = "bad_reply"  # our own code beside those of servers
LONGEST_BACKOFF_S = 60
LONGEST_RETRY_AFTER_S = 600
KEY_SHAPE = re.compile(r"\bsk-[\w*.-]+")  # also the masked form that servers quote

Result = TypeVar("Result")


class ServerError(JudgeError):
    """The server refuses, or kept failing: `said` are its words, `code` its name for it."""

    def __init__(self, message: str, *, said: str, code: str | None) -> None:
        super().__init__(message)
        self.said = said
        self.code = code


def retry_after_s(error: BaseException | None) -> float | None:
    """Return the seconds that a server's Retry-After asks to wait, if it does."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    after = headers.get("retry-after", "")
    for text, unit_s in ((headers.get("retry-after-ms", ""), 0.001), (after, 1)):
        with contextlib.suppress(ValueError):
            return max(0.0, float(text) * unit_s)
    with contextlib.suppress(ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
    return None


def is_transient(error: BaseException) -> bool:
    """Whether asking again may help: time-outs, cut connections, 408, 409, 429, 5xx, garbage.

    A spent quota (also 429) and a Retry-After beyond ten minutes do not pass
    while a job waits.
    """
    if isinstance(error, openai.APIStatusError):
        busy = error.status_code in (408, 409, 429) or error.status_code >= 500
        wait = retry_after_s(error) or 0
        return busy and error.code != "insufficient_quota" and wait <= LONGEST_RETRY_AFTER_S
    return isinstance(error, openai.APIConnectionError | BadReplyError | ValueError)


class JudgeServer:
    """An OpenAI-compatible server.

    The library's own retries are switched off: they give up on a Retry-After
    above two minutes, wait at most eight seconds otherwise, repeat a request
    whose quota is spent, and do not repeat one whose reply is not JSON.

    Parameters
    ----------
    base_url : str
        Address up to and including ``/v1``.
    api_key : str
        Replaced by "[key]" in whatever the server says.
    timeout_s : float
        Longest wait for one reply.
    retries : int
        How often a request is repeated after its first failure.
    first_wait_s : float, default=1
        Wait before the first repetition; doubles up to a minute.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        timeout_s: float,
        retries: int,
        first_wait_s: float = 1.0,
    ) -> None:
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line per request otherwise
        self._client = openai.OpenAI(
            base_url=base_url, api_key=api_key, timeout=timeout_s, max_retries=0
        )
        self._api_key = api_key
        self._retries = retries
        self._backoff = wait_exponential_jitter(
            initial=first_wait_s, max=LONGEST_BACKOFF_S, jitter=first_wait_s
        )
        self._stop = threading.Event()

    def redact(self, text: str) -> str:
        """Return `text` without the key and without whatever else looks like one."""
        return KEY_SHAPE.sub("[key]", text.replace(self._api_key, "[key]"))

    def _wait(self, state: RetryCallState) -> float:
        after = retry_after_s(state.outcome.exception()) if state.outcome else None
        return self._backoff(state) if after is None else after

    def call(self, request: Callable[[openai.OpenAI], Result]) -> Result:
        """Return ``request(client)``, repeated while it fails for a reason that may pass.

        Raises
        ------
        ServerError
            When it does not pass. The message does not hold the key.
        """
        patiently = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(self._retries + 1) | stop_when_event_set(self._stop),
            wait=self._wait,
            sleep=sleep_using_event(self._stop),
            reraise=True,
        )
        try:
            return patiently(request, self._client)
        except openai.OpenAIError as error:
            said, code = self.redact(str(error))[:LONGEST_REPLY], getattr(error, "code", None)
        except ValueError as error:  # no JSON, or BadReplyError
            said, code = self.redact(str(error))[:LONGEST_REPLY], BAD_REPLY
        raise ServerError(
            f"The judge's server at {self._client.base_url} failed ({said}). Labels so far are "
            "kept: correct the cause (judge in the config, or the key) and run again.",
            said=said,
            code=code,
        )

    def judge(self, body: Body) -> Verdict:
        """Return the verdict on one request; what is no verdict is left to a person."""
        rest = {
            name: value for name, value in body.items() if name not in ("model", "messages")
        }

        def ask(client: openai.OpenAI) -> Verdict:
            raw = client.chat.completions.with_raw_response.create(
                model=body["model"], messages=body["messages"], extra_body=rest
            )
            return read_completion(json.loads(raw.http_response.text))

        try:
            verdict = self.call(ask)
        except ServerError as error:
            if error.code == BAD_REPLY:
                return Verdict(None, "malformed", error.said)
            if error.code in REFUSAL_CODES:
                return Verdict(None, "refusal", error.said)
            raise
        return verdict._replace(reply=self.redact(verdict.reply))

    def judge_all(
        self, bodies: Mapping[str, Body], *, concurrency: int
    ) -> Generator[tuple[str, Verdict], None, None]:
        """Yield the key and verdict of each of `bodies` as replies come.

        After a failure nothing new is asked, but replies on their way are still
        yielded before it is raised: they are paid for.
        """
        failure: JudgeError | None = None
        with ThreadPoolExecutor(concurrency) as pool:
            asked = {pool.submit(self.judge, body): key for key, body in bodies.items()}
            try:
                for done in as_completed(asked):
                    if done.cancelled():
                        continue
                    if error := done.exception():
                        if not isinstance(error, JudgeError):
                            raise error
                        failure = failure or error
                        self._give_up(asked)
                    else:
                        yield asked[done], done.result()
            finally:
                self._give_up(asked)
        if failure:
            raise failure

    def _give_up(self, asked: Mapping) -> None:
        self._stop.set()
        for future in asked:
            future.cancel()

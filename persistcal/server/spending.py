"""The cost of requests to OpenAI-compatible servers and its ceilings, and errors of servers."""

import logging
import math
import os
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from persistcal.store.replies import Ledger

log = logging.getLogger(__name__)

REFUSAL_CODES = {"content_filter", "content_policy_violation"}

BYTES_PER_TOKEN = 3  # English has over 4, so costs are overestimated
TOKENS_PER_MESSAGE = 8
TOKENS_OF_UNLIMITED_REPLY = 1000
# Limits of a reply: of chat completions, of completions, of OpenAI's interface for responses.
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

Body = dict[str, Any]  # JSON of a request for a completion or a chat completion


@dataclass(frozen=True, kw_only=True)
class Access:
    """Settings of a server, from its section of the config.

    Prices are per million tokens. The ceilings apply to all jobs of a study together.
    """

    price_input: float
    price_output: float
    max_requests: int
    max_cost: float | None  # None: without a limit
    timeout_s: float = 60  # longest wait for a complete reply
    retries: int = 8  # after the first failure
    first_wait_s: float = 1  # before the first retry; it doubles up to a minute
    concurrency: int = 16  # requests on their way at once, over all jobs
    api_key_env: str = "OPENAI_API_KEY"  # the environment variable with the key

    @property
    def api_key(self) -> str:
        """The key, or an empty text."""
        return os.environ.get(self.api_key_env, "").strip()


class ServerError(RuntimeError):
    """Requests cannot be sent, paid or answered; the message contains the remedy.

    `reply`, `code` and `status` are the server's message, error code and HTTP status, or empty
    without a reply.
    """

    def __init__(
        self, message: str, *, reply: str = "", code: str = "", status: int = 0
    ) -> None:
        super().__init__(message)
        self.reply = reply
        self.code = code
        self.status = status


class UnreadableError(ServerError):
    """The server's replies violate its interface even after retries."""


class BadReplyError(ValueError):
    """A server's reply violates its interface."""


class NoReplyError(Exception):
    """A complete reply did not arrive in time."""


def endpoint_of(body: Body) -> str:
    """Return the path of the request `body`, relative to the server's address."""
    ends = {"prompt": "/completions", "input": "/responses"}
    return next((end for key, end in ends.items() if key in body), "/chat/completions")


def messages_of(body: Body) -> list[dict[str, str]]:
    """Return the messages of the request `body`; the user's is the last."""
    if "prompt" in body:
        return [{"content": body["prompt"]}]
    return body["input"] if "input" in body else body["messages"]


class Estimate(NamedTuple):
    """Requests, tokens, and their cost in the currency of the prices."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost: float


@dataclass(frozen=True)
class Budget:
    """The prices and ceilings of requests to a model.

    Messages name the section of the config with these settings, and use `doing` as a word for
    the work.
    """

    model: str
    access: Access
    section: str
    doing: str

    @property
    def ceilings(self) -> tuple[int, float]:
        """The largest numbers of requests and of their cost."""
        most = self.access.max_cost
        return self.access.max_requests, math.inf if most is None else most

    def plan(self, bodies: Collection[Body], ledger: Ledger) -> float:
        """Return the estimated cost per request; raise ServerError above a ceiling."""
        prices = self.access.price_input, self.access.price_output
        planned = estimate(bodies, price_input=prices[0], price_output=prices[1])
        max_requests, max_cost = self.ceilings
        log.info("Requests to %s: %s", self.model, planned)
        requests, cost = ledger.total()
        expected = (
            f"{self.doing} needs {planned.requests} more requests (about "
            f"{planned.input_tokens} tokens in, at most {planned.output_tokens} out, cost "
            f"about {planned.cost:.2f}) after {requests} so far (about {cost:.2f})"
        )
        if requests + planned.requests > max_requests:
            raise ServerError(
                f"{expected}, above {self.section}.max_requests {max_requests}; raise it "
                f"to {requests + planned.requests} or select fewer questions. Nothing was sent."
            )
        if not cost + planned.cost <= max_cost:  # also refuses NaN
            raise ServerError(
                f"{expected}, above {self.section}.max_cost {max_cost:g}; raise it to "
                f"{cost + planned.cost:.2f} or select fewer questions. Nothing was sent."
            )
        return planned.cost / planned.requests


def estimate(bodies: Iterable[Body], *, price_input: float, price_output: float) -> Estimate:
    """Estimate the cost of sending each of `bodies` once.

    A message counts as one token per 3 bytes of UTF-8, plus 8. A reply counts as the request's
    limit of tokens, by default 1,000, times its number `n` of replies. Prices are per million
    tokens.
    """
    requests = input_tokens = output_tokens = 0
    for body in bodies:
        requests += 1
        for message in messages_of(body):
            size = len(message["content"].encode())
            input_tokens += -(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
        limits = (body[name] for name in LIMITS if body.get(name))
        output_tokens += next(limits, TOKENS_OF_UNLIMITED_REPLY) * (body.get("n") or 1)
    cost = (input_tokens * price_input + output_tokens * price_output) / 1e6
    return Estimate(requests, input_tokens, output_tokens, cost)


class Bookings:
    """Book the requests of a job in a ledger, in advance and again for each retry."""

    def __init__(self, budget: Budget, ledger: Ledger, bodies: Collection[Body]) -> None:
        self._cost = budget.plan(bodies, ledger)
        self._budget, self._ledger, self._ahead = budget, ledger, len(bodies)
        self._lock = threading.Lock()
        ledger.add(budget.model, len(bodies), self._cost * len(bodies), "asked")

    def use_one(self) -> None:
        """Count one request as sent; raise ServerError if a retry exceeds a ceiling."""
        with self._lock:
            if self._ahead:
                self._ahead -= 1
                return
            requests, cost = self._ledger.total()
            needs = {"max_requests": requests + 1, "max_cost": cost + self._cost}
            for (key, needed), limit in zip(needs.items(), self._budget.ceilings, strict=True):
                if not needed <= limit:
                    raise ServerError(
                        f"{self._budget.doing} has sent {requests} requests (cost about "
                        f"{cost:.2f}), and one that failed cannot be repeated within "
                        f"{self._budget.section}.{key} {limit:g}; raise it and run again."
                    )
            self._ledger.add(self._budget.model, 1, self._cost, "asked again")

    def give_back(self) -> None:
        """Uncount one request that did not reach the server."""
        with self._lock:
            self._ahead += 1

    def close(self) -> None:
        """Remove unsent requests from the ledger; later requests are booked as retries."""
        with self._lock:
            lost, self._ahead = self._ahead, 0
            self._ledger.add(self._budget.model, -lost, -self._cost * lost, "not sent")

"""What judging will cost, said before it is spent, and a ceiling on it."""

import datetime
import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from persistcal.judge.labels import JudgeError
from persistcal.judge.prompt import LIMITS, Body, messages_of
from persistcal.judge.rows import append_rows, parse_rows, read_lines
from persistcal.judge.settings import JudgeSettings

log = logging.getLogger(__name__)

BYTES_PER_TOKEN = 3  # English has over 4, so an estimate is on the safe side
TOKENS_PER_MESSAGE = 8
TOKENS_OF_UNLIMITED_REPLY = 1000
COLUMNS = ("time", "model", "requests", "cost", "what")


class Estimate(NamedTuple):
    """Requests, tokens, and their cost in the currency of the prices."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost: float


def estimate(bodies: Iterable[Body], *, price_input: float, price_output: float) -> Estimate:
    """Estimate what `bodies` cost when each is sent once.

    A message counts as a token per 3 bytes of UTF-8 plus 8; a reply as the
    longest that the request allows, or 1,000 tokens if it names no limit.

    Parameters
    ----------
    bodies : iterable of dict
        Requests, see `persistcal.judge.prompt.request_body`.
    price_input, price_output : float
        Price of a million tokens.

    Examples
    --------
    >>> message = {"role": "user", "content": "x" * 36}
    >>> estimate(
    ...     [{"messages": [message], "max_tokens": 10}], price_input=1e6, price_output=2e6
    ... )
    Estimate(requests=1, input_tokens=20, output_tokens=10, cost=40.0)
    """
    requests = input_tokens = output_tokens = 0
    for body in bodies:
        requests += 1
        for message in messages_of(body):
            size = len(message["content"].encode())
            input_tokens += -(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
        limits = (body[name] for name in (*LIMITS, "max_output_tokens") if body.get(name))
        output_tokens += next(limits, TOKENS_OF_UNLIMITED_REPLY)
    cost = (input_tokens * price_input + output_tokens * price_output) / 1e6
    return Estimate(requests, input_tokens, output_tokens, cost)


class Ledger:
    """A CSV file of all requests of a study, so that one ceiling holds for all its jobs.

    Requests are written down before they are sent, and taken back when no
    reply came; a killed job therefore leaves too much in it, never too little.
    Use it only while holding the lock of `persistcal.judge.cache.LabelCache`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def total(self) -> tuple[int, float]:
        """Return the number and the estimated cost of all requests so far.

        A line that a crash cut short does not count: it was to be written
        before its requests were sent, or after they were taken back.
        """
        requests, cost = 0, 0.0
        rows = parse_rows(read_lines(self.path), columns=len(COLUMNS))
        for line, fields in rows:
            if fields == list(COLUMNS):
                continue
            try:
                _, _, n, spent, _ = fields or []
                numbers = int(n), float(spent)
            except ValueError:
                numbers = 0, math.nan
            if not math.isfinite(numbers[1]):
                log.warning("%s: line %d is damaged and does not count.", self.path, line)
                continue
            requests, cost = requests + numbers[0], cost + numbers[1]
        return requests, cost

    def add(self, model: str, requests: int, cost: float, what: str) -> None:
        """Append a line; negative numbers take requests back."""
        if not requests:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        line = [now, model, requests, f"{cost:.6f}", what]
        append_rows(self.path, [line] if self.path.exists() else [COLUMNS, line])


def plan(bodies: Mapping[str, Body], ledger: Ledger, settings: JudgeSettings) -> float:
    """Return the estimated cost of one of `bodies`; refuse all that go above a ceiling.

    Raises
    ------
    JudgeError
        Names the key of the ceiling and by how much it is too low.
    """
    planned = estimate(
        bodies.values(), price_input=settings.price_input, price_output=settings.price_output
    )
    log.info("About to ask %s: %s", settings.model, planned)
    requests, cost = ledger.total()
    expected = (
        f"Judging needs {planned.requests} more requests (about {planned.input_tokens} tokens "
        f"in, at most {planned.output_tokens} out, cost about {planned.cost:.2f}) after "
        f"{requests} so far (about {cost:.2f})"
    )
    if requests + planned.requests > settings.max_requests:
        raise JudgeError(
            f"{expected}, above judge.max_requests {settings.max_requests}; raise it to "
            f"{requests + planned.requests} or select fewer questions. Nothing was sent."
        )
    if not cost + planned.cost <= settings.max_cost:  # so that NaN is no ceiling to pass
        raise JudgeError(
            f"{expected}, above judge.max_cost {settings.max_cost:g}; raise it to "
            f"{cost + planned.cost:.2f} or select fewer questions. Nothing was sent."
        )
    return planned.cost / planned.requests

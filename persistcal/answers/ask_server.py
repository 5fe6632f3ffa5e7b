"""Ask a model behind an API for its answers, and keep its replies: nothing is asked twice."""

import datetime
import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from persistcal.answers.server_samples import (
    Sample,
    SampleReply,
    Served,
    read_samples,
)
from persistcal.server.client import ModelServer, in_json
from persistcal.server.errors import PIECE, REFUSAL_CODES, ServerError
from persistcal.server.spending import Body, Budget, ask_at_once, endpoint_of, messages_of
from persistcal.store.files import exists
from persistcal.store.paid import Ledger, ReplyCache, alone
from persistcal.store.rows import append_rows, parse_rows, read_lines

log = logging.getLogger(__name__)

TOO_LONG = re.compile(r"context.{0,20}(length|size|window)", re.IGNORECASE)
ANSWERED_BY = ("time", "asked", "model", "system_fingerprint")


@dataclass(frozen=True)
class Reach:
    """How a model behind an API is reached, and what it may cost.

    `section` is the config's part that describes the model, prices are per million tokens, and
    `concurrency` and the ceilings count over all jobs of the study.
    """

    section: str
    concurrency: int
    timeout_s: float
    retries: int
    max_requests: int
    max_cost: float | None = None
    price_input: float = 0
    price_output: float = 0
    api_key_env: str = "OPENAI_API_KEY"
    first_wait_s: float = 1


class SampleReplies:
    """The replies of a checkpoint's server in `folder`, which are all of one model."""

    def __init__(self, folder: str, served: Served, section: str) -> None:
        self.folder = folder
        self._cache = ReplyCache(folder)
        self._asked = f"{served.model} at {served.base_url}"
        self._section = section
        self._lock = threading.Lock()
        self._list = f"{folder}/answered_by.csv"

    def get(self, key: str, n: int) -> list[Sample] | None:
        """Return the `n` samples under `key`; None, with a warning, when they are damaged."""
        try:
            if (entry := self._cache.get(key)) is None:
                return None
            samples = [Sample(**sample) for sample in entry["samples"]]
        except (ValueError, KeyError, TypeError):
            samples = []
        if len(samples) == n and all(isinstance(s.text, str) for s in samples):
            return samples
        log.warning("%s is damaged; its question is asked again.", self._cache.path(key))
        return None

    def keep(self, key: str, reply: SampleReply, body: Body) -> None:
        """Keep the reply to a request; that of another model than before is refused."""
        with self._lock:
            self._note(reply)
        asked = messages_of(body)[-1]["content"]
        samples = [sample._asdict() for sample in reply.samples]
        self._cache.put(key, {**reply._asdict(), "samples": samples, "asked": asked})

    def _note(self, reply: SampleReply) -> None:
        """Write down who has answered, where that is new."""
        known = [
            fields[2:]
            for _, fields in parse_rows(read_lines(self._list), columns=len(ANSWERED_BY))
            if fields and len(fields) == len(ANSWERED_BY) and fields[1] == self._asked
        ]
        said = [reply.model, reply.fingerprint]
        if not any(said) or said in known:
            return
        if known and reply.model != known[0][0]:
            raise ServerError(
                f"{self._section}: {self._asked} has answered as {known[0][0]!r} so far and "
                f"now answers as {reply.model!r}, which is another model. Name a dated one, or "
                f"describe the new one as a checkpoint of its own; delete {self.folder} to "
                "have it asked everything anew."
            )
        if known:
            log.warning(
                "%s: %s, which answers as %r, has changed behind its name: its "
                "system_fingerprint is %r and was %s. Its answers so far are kept.",
                *(self._section, self._asked, *said),
                ", ".join(repr(fingerprint) for _, fingerprint in known),
            )
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = [now, self._asked, *said]
        append_rows(self._list, [row] if exists(self._list) else [ANSWERED_BY, row])


def ask_for_samples(
    requests: Mapping[str, Body],
    served: Served,
    reach: Reach,
    *,
    folder: str,
    replies: str,
    api_key: str,
) -> dict[str, list[Sample]]:
    """Return the samples that each of `requests` (`sample_requests`) asks for, by key.

    `folder` is of all jobs that ask for answers, with their ledger, and `replies` of the
    checkpoint's own. The key is needed only when something has to be asked; where a ceiling,
    the key or the server stands in the way, what was answered is kept.
    """
    kept = SampleReplies(replies, served, reach.section)

    def look_up() -> dict[str, list[Sample]]:
        found = {key: kept.get(key, body.get("n", 1)) for key, body in requests.items()}
        return {key: samples for key, samples in found.items() if samples is not None}

    found = look_up()
    log.info("%d requests, %d of them new", len(requests), len(requests) - len(found))
    if len(found) < len(requests):
        with alone(f"{folder}/lock", waiting="Waiting for another job that asks an API."):
            found = look_up()
            missing = {key: body for key, body in requests.items() if key not in found}
            _ask(missing, kept, served, reach, Ledger(f"{folder}/spending.csv"), api_key)
        found = look_up()
    _report([sample for samples in found.values() for sample in samples])
    return found


def _ask(
    bodies: Mapping[str, Body],
    kept: SampleReplies,
    served: Served,
    reach: Reach,
    ledger: Ledger,
    api_key: str,
) -> None:
    server = ModelServer(served.base_url, api_key, reach, section=reach.section, kept="Answers")
    limits = reach.max_requests, float("inf") if reach.max_cost is None else reach.max_cost
    prices = reach.price_input, reach.price_output

    def ask_one(_: str, body: Body) -> SampleReply:
        read = partial(read_samples, body=body, served=served, section=reach.section)
        path = endpoint_of(body)
        try:
            reply = server.call(partial(server.send, "post", path, in_json(read), body=body))
        except ServerError as error:
            if error.code in REFUSAL_CODES:
                n = body.get("n", 1)
                return SampleReply([Sample("", None, None, "content_filter")] * n, "", "")
            if TOO_LONG.search(f"{error.code} {error.said}"):
                raise ServerError(
                    f"{reach.section}: a prompt and its answer do not fit into the server's "
                    f"context ({error.said}); lower prompts.few_shot or "
                    "decoding.max_new_tokens, or serve the model with a longer one."
                ) from None
            raise
        return _without(api_key, reply)

    ask_at_once(
        bodies,
        ask_one,
        lambda key, reply: kept.keep(key, reply, bodies[key]),
        server=server,
        budget=Budget(served.model, *prices, *limits, "api", f"Asking {reach.section}"),
        ledger=ledger,
        concurrency=reach.concurrency,
    )


def _without(api_key: str, reply: SampleReply) -> SampleReply:
    """Return `reply` without the key, should a server say it; short ones are usual words."""

    def hide(said: Any) -> Any:  # noqa: ANN401
        secret = isinstance(said, str) and len(api_key) >= PIECE
        return said.replace(api_key, "[key]") if secret else said

    samples = [Sample(*map(hide, sample)) for sample in reply.samples]
    return SampleReply(samples, hide(reply.model), hide(reply.fingerprint))


def _report(samples: list[Sample]) -> None:
    """Log how many answers are not whole."""
    for n, what in (
        (sum(sample.finish == "length" for sample in samples), "were cut as too long"),
        (sum(sample.refused for sample in samples), "were refused"),
        (sum(not sample.text.strip() for sample in samples), "are empty"),
    ):
        if n:
            log.warning("%d of %d answers %s", n, len(samples), what)

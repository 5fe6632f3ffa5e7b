"""Answers and stated confidences of a model behind an API, cached on disk."""

import bisect
import datetime
import itertools
import logging
import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from persistcal.models.prompts import OPEN, THOUGHTS
from persistcal.server.client import PIECE, ModelServer, ask_at_once
from persistcal.server.spending import (
    Access,
    BadReplyError,
    Body,
    Budget,
    ServerError,
    messages_of,
)
from persistcal.store.replies import (
    Ledger,
    ReplyCache,
    append_rows,
    hold_lock,
    parse_rows,
    read_lines,
    request_digest,
)

log = logging.getLogger(__name__)

TOO_LONG = re.compile(r"context.{0,20}(length|size|window)", re.IGNORECASE)
ANSWERED_BY = ("time", "asked", "model", "system_fingerprint")
ROUNDING = 1e-3  # a server's log-probability can exceed 0 by this


@dataclass(frozen=True)
class Served:
    """A model behind an API, with the settings that its answers depend on."""

    base_url: str
    model: str
    request: Mapping[str, Any] = field(default_factory=dict)  # more fields; null removes one
    logprobs: bool = False  # whether replies without log-probabilities are refused
    samples_per_request: int = 1
    reasoning: str = "none"  # before the answer: none, "drop" or "keep"
    one_line: bool = True  # whether an answer ends at its first line break


class SampleDraws(NamedTuple):
    """Number and settings of the samples of each question."""

    n_samples: int
    temperature: float
    top_p: float
    seed: int
    max_new_tokens: int


class ServedSample(NamedTuple):
    """An answer, complete or up to its first line break. Unknown numbers are None.

    The log-probability is the sum over the answer's tokens in the server's list.
    """

    text: str
    logprob: float | None
    n_tokens: int | None
    finish: str
    reasoning: str = ""

    @property
    def refused(self) -> bool:
        """Whether the server or the model refused to answer."""
        return self.finish in ("refusal", "content_filter")


class SampleReply(NamedTuple):
    """A server's reply: samples, and the name of the model that answered."""

    samples: list[ServedSample]
    model: str
    fingerprint: str


def sample_requests(question: Body, served: Served, draws: SampleDraws) -> dict[str, Body]:
    """Return the requests for the samples of a question, by a digest of content and model.

    The seed of a request depends only on `draws.seed`, the question and the number of the first
    sample. `question` contains the field prompt of a completion, or messages of a chat.
    """
    chat = "messages" in question
    fields = {
        "model": served.model,
        **question,
        "max_completion_tokens" if chat else "max_tokens": draws.max_new_tokens,
        "temperature": draws.temperature,
        "top_p": draws.top_p,
        "stop": ["\n"] if served.one_line and served.reasoning == "none" else None,
        "logprobs": (chat or 1) if served.logprobs else None,
    }
    requests = {}
    for first in range(0, draws.n_samples, served.samples_per_request):
        n = min(served.samples_per_request, draws.n_samples - first)
        seed = int(request_digest([draws.seed, question, first])[:8], 16) >> 1
        body = {**fields, "seed": seed, "n": n if n > 1 else None, **served.request}
        body = {name: value for name, value in body.items() if value is not None}
        requests[request_digest([served.base_url, body, first])] = body
    return requests


def read_samples(reply: Any, body: Body, served: Served, section: str) -> SampleReply:  # noqa: ANN401
    """Read the samples of a completion or chat completion, in order.

    Other replies and impossible values raise a `BadReplyError`. A server that ignores the
    settings in the config's `section` raises a `ServerError`.
    """
    n = body.get("n", 1)
    try:
        choices = {c["index"]: _read(c, served.one_line) for c in reply["choices"]}
        n_given = len(reply["choices"])
        model, fingerprint = (reply.get(key) or "" for key in ("model", "system_fingerprint"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        raise BadReplyError("not a completion with its log-probabilities in order") from None
    if not isinstance(model, str) or not isinstance(fingerprint, str):
        raise BadReplyError("a model or system_fingerprint that is not a text")
    if len(choices) < n_given:
        raise BadReplyError("two choices with the same index")
    too_few = 0 < len(choices) < n
    if sorted(choices) != list(range(len(choices) if too_few else n)):
        raise BadReplyError(f"{len(choices)} samples instead of {n}")
    samples = [choices[i] for i in sorted(choices)]
    if too_few:
        raise ServerError(
            f"config: {section}.samples_per_request is {served.samples_per_request}, but the "
            f"server gave {len(choices)} of {n} samples of one request; set it to 1."
        )
    if served.reasoning == "none" and any(s.reasoning for s in samples):
        raise ServerError(
            f"config: {section}.reasoning is none, but the model thinks before it answers; set "
            "it to drop or keep, and let the answer be longer (max_completion_tokens)."
        )
    if served.logprobs and any(s.logprob is None and s.text and not s.refused for s in samples):
        gave = "gave no log-probabilities"
        if any(choice.get("logprobs") for choice in reply["choices"]):
            gave = "goes on after the line break, and its tokens do not spell the answer"
        raise ServerError(
            f"config: {section}.logprobs is true, but the server {gave}; set it to false and "
            "leave out the estimators that need them."
        )
    if not served.logprobs:
        samples = [s._replace(logprob=None, n_tokens=None) for s in samples]
    if served.reasoning != "keep":
        samples = [s._replace(reasoning="") for s in samples]
    return SampleReply(samples, model, fingerprint)


def _read(choice: Any, one_line: bool) -> ServedSample:  # noqa: ANN401
    message = choice.get("message")
    if message is None:
        text, thought = choice["text"], ""
    else:
        text = message.get("content") or message.get("refusal") or ""
        thought = message.get("reasoning_content") or message.get("reasoning") or ""
    finish = choice.get("finish_reason") or ""
    if message and message.get("refusal"):
        finish = "refusal"
    for part in (text, thought, finish):
        part.encode()  # refuses values that are not text or cannot be written
    if aloud := THOUGHTS.match(text):
        thought, text = thought + aloud[0], text[aloud.end() :]
    elif text.lstrip().startswith(OPEN):  # reasoning without an answer
        thought, text = thought + text, ""
    text = text.lstrip() if thought else text
    whole = text
    text = text.split("\n", 1)[0] if one_line else text
    if thought:
        return ServedSample(text, None, None, finish, thought)
    cut = text if text != whole else None
    return ServedSample(text, *_logprob(choice.get("logprobs") or {}, cut), finish)


def _logprob(listed: Any, cut: str | None) -> tuple[float | None, int | None]:  # noqa: ANN401
    """Return sum and number of the log-probabilities of a choice, or None.

    If an answer was `cut` from a longer text, only the answer's own tokens count. The last one
    can contain the line break. The numbers are unknown if the server's tokens do not spell the
    answer.
    """
    tokens = listed.get("content")
    values = listed.get("token_logprobs") if tokens is None else [t["logprob"] for t in tokens]
    if values and cut is not None:
        words = listed.get("tokens") or []
        pieces = [t.encode() for t in words] if tokens is None else list(map(_spelled, tokens))
        ends = list(itertools.accumulate(map(len, pieces)))
        is_spelled = b"".join(pieces).startswith(f"{cut}\n".encode())
        is_known = bool(cut) and is_spelled and len(pieces) == len(values)
        values = values[: 1 + bisect.bisect_left(ends, len(cut.encode()))] if is_known else []
    if not values:
        return None, None
    if not all(math.isfinite(value) and value <= ROUNDING for value in values):
        raise ValueError
    return float(sum(min(value, 0.0) for value in values)), len(values)


def _spelled(token: Any) -> bytes:  # noqa: ANN401
    """Return the bytes of a token; the text can show a part of a letter as ``\ufffd``."""
    return token["token"].encode() if token.get("bytes") is None else bytes(token["bytes"])


@dataclass(frozen=True, kw_only=True)
class ApiSettings(Access):
    """How to reach a model behind an API; `section` is the model's section in the config."""

    section: str
    max_cost: float | None = None
    price_input: float = 0
    price_output: float = 0


class SampleReplies:
    """Replies of a checkpoint's server, kept in `folder`; all are from the same model."""

    def __init__(self, folder: str, served: Served, section: str) -> None:
        self.folder = folder
        self._cache = ReplyCache(folder)
        self._asked = f"{served.model} at {served.base_url}"
        self._section = section
        self._lock = threading.Lock()
        self._list = f"{folder}/answered_by.csv"

    def get(self, requests: Mapping[str, Body]) -> dict[str, list[ServedSample]]:
        """Return the samples of requests with stored replies."""

        def read(entry: Any, n: int) -> list[ServedSample] | None:  # noqa: ANN401
            samples = [ServedSample(**sample) for sample in entry["samples"]]
            is_whole = all(isinstance(sample.text, str) for sample in samples)
            return samples if is_whole and len(samples) == n else None

        again = "the question is asked again"
        kept = {
            key: self._cache.get(key, partial(read, n=body.get("n", 1)), again)
            for key, body in requests.items()
        }
        return {key: samples for key, samples in kept.items() if samples}

    def keep(self, key: str, reply: SampleReply, body: Body) -> None:
        """Write the reply to a request; refuse a reply of another model than before."""
        with self._lock:
            self._note_model(reply)
        prompt = messages_of(body)[-1]["content"]
        samples = [sample._asdict() for sample in reply.samples]
        self._cache.put(key, {**reply._asdict(), "samples": samples, "asked": prompt})

    def _note_model(self, reply: SampleReply) -> None:
        """List the model that answered, if it is new."""
        listed = [
            fields[2:]
            for _, fields in parse_rows(read_lines(self._list), columns=len(ANSWERED_BY))
            if fields and len(fields) == len(ANSWERED_BY) and fields[1] == self._asked
        ]
        stated = [reply.model, reply.fingerprint]
        if not any(stated) or stated in listed:
            return
        if listed and reply.model != listed[0][0]:
            raise ServerError(
                f"{self._section}: {self._asked} has answered as {listed[0][0]!r} so far and "
                f"now answers as {reply.model!r}, which is another model. Name a dated one, or "
                f"describe the new one as another checkpoint; delete {self.folder} to ask it "
                "all questions."
            )
        if listed:
            log.warning(
                "%s: %s, which answers as %r, has changed behind its name: its "
                "system_fingerprint is %r and was %s. The answers so far are kept.",
                *(self._section, self._asked, *stated),
                ", ".join(repr(fingerprint) for _, fingerprint in listed),
            )
        timestamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = [timestamp, self._asked, *stated]
        append_rows(self._list, [row] if Path(self._list).exists() else [ANSWERED_BY, row])


def samples_of_questions(
    questions: Mapping[str, Body],
    served: Served,
    draws: SampleDraws,
    api: ApiSettings,
    *,
    folder: str,
    replies: str,
) -> dict[str, list[ServedSample]]:
    """Return the samples of each question, see `sample_requests`.

    `folder` belongs to all jobs that ask for answers and contains their ledger; `replies` is
    the checkpoint's folder. The API key is needed only for new requests. If a ceiling, the key
    or the server stops the job, received answers are kept.
    """
    requests = {name: sample_requests(body, served, draws) for name, body in questions.items()}
    bodies = {key: body for keys in requests.values() for key, body in keys.items()}
    kept = SampleReplies(replies, served, api.section)
    samples = kept.get(bodies)
    log.info("%d requests, %d of them new", len(bodies), len(bodies) - len(samples))
    if len(samples) < len(bodies):
        with hold_lock(f"{folder}/lock", waiting="Waiting for another job that asks an API."):
            asked_since = kept.get(bodies)
            missing = {key: body for key, body in bodies.items() if key not in asked_since}
            _ask(missing, kept, served, api, Ledger(f"{folder}/spending.csv"))
        samples = kept.get(bodies)
    answers = [answer for several in samples.values() for answer in several]
    for n, problem in (
        (sum(answer.finish == "length" for answer in answers), "were cut as too long"),
        (sum(answer.refused for answer in answers), "were refused"),
        (sum(not answer.text.strip() for answer in answers), "are empty"),
    ):
        if n:
            log.warning("%d of %d answers %s", n, len(answers), problem)
    return {name: [s for key in keys for s in samples[key]] for name, keys in requests.items()}


def _ask(
    bodies: Mapping[str, Body],
    kept: SampleReplies,
    served: Served,
    api: ApiSettings,
    ledger: Ledger,
) -> None:
    server = ModelServer(served.base_url, api, section=api.section, kept="Answers")
    budget = Budget(served.model, api, "api", f"Asking {api.section}")

    def ask_one(_: str, body: Body) -> SampleReply:
        refusal = [ServedSample("", None, None, "content_filter")] * body.get("n", 1)
        read = partial(read_samples, body=body, served=served, section=api.section)
        try:
            reply = server.complete(body, read, lambda _: SampleReply(refusal, "", ""))
        except ServerError as error:
            if TOO_LONG.search(f"{error.code} {error.reply}"):
                raise ServerError(
                    f"{api.section}: a prompt and its answer do not fit into the server's "
                    f"context ({error.reply}); lower prompts.few_shot or "
                    "decoding.max_new_tokens, or serve the model with a longer one."
                ) from None
            raise
        return _hide_key(api.api_key, reply)

    ask_at_once(
        bodies,
        ask_one,
        lambda key, reply: kept.keep(key, reply, bodies[key]),
        server=server,
        budget=budget,
        ledger=ledger,
    )


def _hide_key(api_key: str, reply: SampleReply) -> SampleReply:
    """Return `reply` without the API key; short keys are usual words and stay."""

    def hide(value: Any) -> Any:  # noqa: ANN401
        is_text = isinstance(value, str) and len(api_key) >= PIECE
        return value.replace(api_key, "[key]") if is_text else value

    samples = [ServedSample(*map(hide, sample)) for sample in reply.samples]
    return SampleReply(samples, hide(reply.model), hide(reply.fingerprint))

"""Samples of a model behind an API: what is asked for them, and what its replies say."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from persistcal.server.errors import BadReplyError, ServerError
from persistcal.server.spending import Body

THOUGHTS = re.compile(r"\A.*</think>", re.DOTALL)  # templates may open them in the prompt
OPEN = "<think>"
ROUNDING = 1e-3  # by which a server's log-probability may be above 0


@dataclass(frozen=True)
class Served:
    """A model behind an API, as far as its answers depend on it.

    `request` has further fields of each request, of which None leaves a field out; with
    `logprobs` replies without are refused; `reasoning` ("none", "drop" or "keep") is for what
    the model thinks aloud before its answer, which with `one_line` ends at its first line
    break.
    """

    base_url: str
    model: str
    request: Mapping[str, Any] = field(default_factory=dict)
    logprobs: bool = False
    samples_per_request: int = 1
    reasoning: str = "none"
    one_line: bool = True


class SampleDraws(NamedTuple):
    """Number and settings of the samples of each question."""

    n_samples: int
    temperature: float
    top_p: float
    seed: int
    max_new_tokens: int


class Sample(NamedTuple):
    """One answer, whole or to its first line break; numbers are None where they are not known.

    The log-probability is summed over the answer's tokens, as the server lists them.
    """

    text: str
    logprob: float | None
    n_tokens: int | None
    finish: str
    reasoning: str = ""

    @property
    def refused(self) -> bool:
        """Whether the server, or the model by its own account, would not answer."""
        return self.finish in ("refusal", "content_filter")


class SampleReply(NamedTuple):
    """A server's reply: samples, and the model that it says has answered."""

    samples: list[Sample]
    model: str
    fingerprint: str


def sample_requests(said: Body, served: Served, draws: SampleDraws) -> dict[str, Body]:
    """Return the requests for the samples of a question, by key.

    Each has a seed that depends on `draws.seed`, the question and the number of its first
    sample alone, and a key that stands for all that it says and to whom. `said` is the
    question: the field prompt of a completion, or messages of a chat.
    """
    chat = "messages" in said
    fields = {
        "model": served.model,
        **said,
        "max_completion_tokens" if chat else "max_tokens": draws.max_new_tokens,
        "temperature": draws.temperature,
        "top_p": draws.top_p,
        "stop": ["\n"] if served.one_line and served.reasoning == "none" else None,
        "logprobs": (chat or 1) if served.logprobs else None,
    }
    requests = {}
    for first in range(0, draws.n_samples, served.samples_per_request):
        n = min(served.samples_per_request, draws.n_samples - first)
        seed = int(_digest([draws.seed, said, first])[:8], 16) >> 1
        body = {**fields, "seed": seed, "n": n if n > 1 else None, **served.request}
        body = {name: value for name, value in body.items() if value is not None}
        requests[_digest([served.base_url, body, first])] = body
    return requests


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_samples(said: Any, body: Body, served: Served, section: str) -> SampleReply:  # noqa: ANN401
    """Read the samples of a completion or chat completion, in their order.

    What is neither, or says what cannot be, is a `BadReplyError`; that of a server that does
    not do what the config's `section` says is a `ServerError`.
    """
    n = body.get("n", 1)
    try:
        choices = {c["index"]: _read(c, served.one_line) for c in said["choices"]}
        n_given = len(said["choices"])
        model, fingerprint = (said.get(key) or "" for key in ("model", "system_fingerprint"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        raise BadReplyError("not a completion with its log-probabilities in order") from None
    if not isinstance(model, str) or not isinstance(fingerprint, str):
        raise BadReplyError("a model or system_fingerprint that is no text")
    if len(choices) < n_given:
        raise BadReplyError("two choices with the same index")
    few = 0 < len(choices) < n
    if sorted(choices) != list(range(len(choices) if few else n)):
        raise BadReplyError(f"{len(choices)} samples instead of {n}")
    samples = [choices[i] for i in sorted(choices)]
    if few:
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
        raise ServerError(
            f"config: {section}.logprobs is true, but the server gave no log-probabilities; "
            "set it to false and leave out the estimators that need them."
        )
    if not served.logprobs:
        samples = [s._replace(logprob=None, n_tokens=None) for s in samples]
    if served.reasoning != "keep":
        samples = [s._replace(reasoning="") for s in samples]
    return SampleReply(samples, model, fingerprint)


def _read(choice: Any, one_line: bool) -> Sample:  # noqa: ANN401
    message = choice.get("message")
    if message is None:
        text, thought = choice["text"], ""
    else:
        text = message.get("content") or message.get("refusal") or ""
        thought = message.get("reasoning_content") or message.get("reasoning") or ""
    finish = choice.get("finish_reason") or ""
    if message and message.get("refusal"):
        finish = "refusal"
    for said in (text, thought, finish):
        said.encode()  # refuses what is no text, or cannot be written
    if aloud := THOUGHTS.match(text):
        thought, text = thought + aloud[0], text[aloud.end() :]
    elif text.lstrip().startswith(OPEN):  # it never came to an answer
        thought, text = thought + text, ""
    text = text.lstrip() if thought else text
    text = text.split("\n", 1)[0] if one_line else text
    if thought:
        return Sample(text, None, None, finish, thought)
    return Sample(text, *_logprob(choice.get("logprobs") or {}), finish)


def _logprob(listed: Any) -> tuple[float | None, int | None]:  # noqa: ANN401
    """Return sum and number of the log-probabilities of a choice; None where it has none."""
    tokens = listed.get("content")
    values = listed.get("token_logprobs") if tokens is None else [t["logprob"] for t in tokens]
    if not values:
        return None, None
    if not all(math.isfinite(value) and value <= ROUNDING for value in values):
        raise ValueError
    return float(sum(min(value, 0.0) for value in values)), len(values)

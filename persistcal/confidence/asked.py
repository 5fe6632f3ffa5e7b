"""Ask a checkpoint in words about its answers: with its weights, or behind an API."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from persistcal.answers.ask_server import Reach, ask_for_samples
from persistcal.answers.few_shot import chat_prompt, chat_turns
from persistcal.answers.predictions import take_predictions
from persistcal.answers.server_samples import SampleDraws, Served, sample_requests
from persistcal.confidence.prompts import confidence_prompt
from persistcal.questions.templates import check_fields

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GREEDY = 1e-6  # temperature at which the likeliest token is drawn
Asks = Callable[[Sequence[str], "Asking"], list[list[str]]]  # the replies to each prompt


@dataclass(frozen=True)
class Asking:
    """How an estimator asks about an answer."""

    prompt: str  # with ``{question}``, and ``{answer}`` and ``{scale}`` as far as it needs them
    n_samples: int  # replies to each prompt
    temperature: float  # 0 takes the likeliest token
    max_new_tokens: int  # of a reply, which may have several lines
    seed: int
    chat: str = ""  # whether a prompt is a user's message; empty where it is text that goes on
    scale: Sequence[str] = field(default_factory=list)  # expressions that the prompt names
    batch_size: Any = "auto"  # and memory_gb: see `persistcal.answers.decode.Search`
    memory_gb: float = 16.0


@dataclass(frozen=True)
class AskedWeights:
    """A checkpoint whose weights are loaded."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"

    def __call__(self, prompts: Sequence[str], how: Asking) -> list[list[str]]:
        """Return the replies that the weights generate."""
        from persistcal.answers.decode import Draw, Search, generate_beams  # torch

        if how.chat:
            key = "the model's chat"
            prompts = [chat_prompt(self.tokenizer, text, key=key) for text in prompts]
        search = Search(
            n_beams=how.n_samples,
            max_new_tokens=how.max_new_tokens,
            draw=Draw(how.temperature or GREEDY, 1.0, how.seed),
            batch_size=how.batch_size,
            memory_gb=how.memory_gb,
            one_line=False,
        )
        said = generate_beams(
            *(self.model, self.tokenizer, "", prompts, search), add_special_tokens=not how.chat
        )
        return [[reply.text for reply in replies] for replies in said]


@dataclass(frozen=True)
class AskedServer:
    """A checkpoint behind an API; `folder` and `kept` are as for its answers."""

    served: Served
    reach: Reach
    folder: str
    kept: str

    def __call__(self, prompts: Sequence[str], how: Asking) -> list[list[str]]:
        """Return the replies of the server, which are asked for once."""
        served = replace(self.served, logprobs=False, one_line=False)
        draws = SampleDraws(how.n_samples, how.temperature, 1.0, how.seed, how.max_new_tokens)
        said = [{"messages": chat_turns(p)} if how.chat else {"prompt": p} for p in prompts]
        requests = [sample_requests(body, served, draws) for body in said]
        found = ask_for_samples(
            {key: body for of_one in requests for key, body in of_one.items()},
            served,
            self.reach,
            folder=self.folder,
            replies=self.kept,
            api_key=os.environ.get(self.reach.api_key_env, "").strip(),
        )
        return [[s.text for key in of_one for s in found[key]] for of_one in requests]


def ask_about_answers(
    questions: pd.DataFrame, clusters: pd.DataFrame, asks: Asks, how: Asking, split: str
) -> pd.DataFrame:
    """Return table REPLIES: what a checkpoint says about its predictions on a split.

    `questions` are QUESTIONS as the checkpoint is asked them.
    """
    optional = ["answer", "scale"] if how.scale else ["answer"]
    check_fields(how.prompt, "The estimator's prompt", ["question"], optional)
    template = how.prompt.replace("{scale}", ", ".join(how.scale))
    asked = take_predictions(questions.sort_values("index"), clusters, split=split)
    pairs = zip(asked["question"], asked["answer"], strict=True)
    said = asks([confidence_prompt(template, *pair) for pair in pairs], how)
    rows = [
        (question_id, sample, text)
        for question_id, replies in zip(asked["question_id"], said, strict=True)
        for sample, text in enumerate(replies)
    ]
    return pd.DataFrame(rows, columns=["question_id", "sample", "text"])

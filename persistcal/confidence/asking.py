"""Ask a checkpoint, loaded or served, how sure it is of its answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from persistcal.answers.clusters import take_predictions
from persistcal.answers.served import ApiSettings, SampleDraws, Served, samples_of_questions
from persistcal.models.prompts import chat_prompt, chat_turns, confidence_prompts
from persistcal.questions.templates import check_fields

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GREEDY = 1e-6  # a temperature that draws the most probable token

Asks = Callable[[Sequence[str], "Asking"], list[list[str]]]  # the replies to each prompt


@dataclass(frozen=True)
class Asking:
    """How an estimator asks about an answer."""

    prompt: str  # with ``{question}`` and, if needed, ``{answer}`` and ``{scale}``
    n_samples: int  # replies to each prompt
    temperature: float  # 0 takes the likeliest token
    max_new_tokens: int  # per reply; a reply can have several lines
    seed: int
    chat: str = ""  # form of a chat prompt; empty if the prompt is text to continue
    scale: Sequence[str] = field(default_factory=list)  # expressions that the prompt names
    batch_size: Any = "auto"  # and memory_gb: see `persistcal.answers.decode.Search`
    memory_gb: float = 16.0


def replies_of_weights(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[str],
    settings: Asking,
) -> list[list[str]]:
    """Return the replies to each prompt that loaded weights generate."""
    from persistcal.answers.decode import Draw, Search, generate_beams  # torch

    if settings.chat:
        key = "the model's chat"
        prompts = [chat_prompt(tokenizer, text, key=key) for text in prompts]
    search = Search(
        n_beams=settings.n_samples,
        max_new_tokens=settings.max_new_tokens,
        draw=Draw(settings.temperature or GREEDY, 1.0, settings.seed),
        batch_size=settings.batch_size,
        memory_gb=settings.memory_gb,
        one_line=False,
    )
    beams = generate_beams(
        *(model, tokenizer, "", prompts, search), add_special_tokens=not settings.chat
    )
    return [[reply.text for reply in replies] for replies in beams]


def replies_of_server(
    served: Served,
    api: ApiSettings,
    folder: str,
    kept: str,
    prompts: Sequence[str],
    settings: Asking,
) -> list[list[str]]:
    """Return the replies to each prompt of a server, which is asked once.

    `folder` and `kept` are as for its answers.
    """
    served = replace(served, logprobs=False, one_line=False)
    draws = SampleDraws(
        *(settings.n_samples, settings.temperature, 1.0, settings.seed), settings.max_new_tokens
    )
    bodies = {
        str(number): {"messages": chat_turns(text)} if settings.chat else {"prompt": text}
        for number, text in enumerate(prompts)
    }
    samples = samples_of_questions(bodies, served, draws, api, folder=folder, replies=kept)
    return [[sample.text for sample in of_prompt] for of_prompt in samples.values()]


def ask_about_answers(
    questions: pd.DataFrame, clusters: pd.DataFrame, asks: Asks, settings: Asking, split: str
) -> pd.DataFrame:
    """Return the table REPLIES: a checkpoint's replies about its predictions on a split.

    `questions` are the QUESTIONS as this checkpoint receives them.
    """
    optional = ["answer", "scale"] if settings.scale else ["answer"]
    check_fields(settings.prompt, "The estimator's prompt", ["question"], optional)
    template = settings.prompt.replace("{scale}", ", ".join(settings.scale))
    answers = take_predictions(questions.sort_values("index"), clusters, split=split)
    said = asks(confidence_prompts(template, answers), settings)
    rows = [
        (question_id, sample, text)
        for question_id, replies in zip(answers["question_id"], said, strict=True)
        for sample, text in enumerate(replies)
    ]
    return pd.DataFrame(rows, columns=["question_id", "sample", "text"])

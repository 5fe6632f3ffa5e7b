"""Questions as a model is asked them, after a few examples: as text or in its chat."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pandas as pd

from persistcal.confidence.prompts import (
    few_shot_groups,
    few_shot_message,
    few_shot_prefix,
    question_suffix,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def chat_turns(question: str, examples: Sequence[tuple[str, str]] = ()) -> list[dict[str, str]]:
    """Return the messages of a chat: `examples`, each with its answer, and the question."""
    turns = [
        {"role": role, "content": content}
        for example in examples
        for role, content in zip(("user", "assistant"), example, strict=True)
    ]
    return [*turns, {"role": "user", "content": question}]


def chat_prompt(
    tokenizer: "PreTrainedTokenizerBase",
    question: str,
    examples: Sequence[tuple[str, str]] = (),
    *,
    key: str,
) -> str:
    """Return the text after which a chat model answers `question`, without thinking aloud.

    It holds the special tokens of the tokenizer's chat template, so none are added to it. The
    error message names the config's `key`.
    """
    if not tokenizer.chat_template:
        raise ValueError(
            f"Tokenizer {tokenizer.name_or_path!r} has no chat template; set {key} to false "
            "for a prompt that is plain text."
        )
    text = tokenizer.apply_chat_template(
        chat_turns(question, examples),
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    return cast(str, text)


class FewShot(NamedTuple):
    """Settings of few-shot prompts: which questions of the split few_shot are shown, and how.

    At `place` 0 they are the first `n_examples`, at 1 the next ones, and so on, each with its
    first reference; `by_category`, of those of the question's own category. With an empty
    `chat` they are text before the question, with "turns" earlier turns of a conversation, and
    with "one_message" in the user's message with the question.
    """

    n_examples: int
    by_category: bool = False
    chat: str = ""
    place: int = 0


def few_shot_prompts(
    tokenizer: "PreTrainedTokenizerBase",
    questions: pd.DataFrame,
    asked: pd.DataFrame,
    how: FewShot,
) -> list[tuple[str, list[str], list[str]]]:
    """Return prefix, suffixes and ids of questions `asked` that are shown the same examples.

    A prompt is ``prefix + suffix``.
    """

    def prompts(shown: Sequence[tuple[str, str]], texts: list[str]) -> tuple[str, list[str]]:
        if not how.chat:
            return few_shot_prefix(shown), [question_suffix(text) for text in texts]
        ask = partial(chat_prompt, tokenizer, key="the model's chat")
        if how.chat == "one_message":
            return "", [ask(few_shot_message(shown, text)) for text in texts]
        return "", [ask(text, shown) for text in texts]

    return [
        (*prompts(shown, group["question"].tolist()), group["question_id"].tolist())
        for shown, group in _groups(questions, asked, how)
    ]


def few_shot_bodies(
    questions: pd.DataFrame, asked: pd.DataFrame, how: FewShot
) -> dict[str, dict[str, Any]]:
    """Return the texts and turns of `few_shot_prompts` as a server is asked them, by question.

    A chat's template is put around them by the server.
    """

    def said(shown: Sequence[tuple[str, str]], text: str) -> dict[str, Any]:
        if not how.chat:
            return {"prompt": few_shot_prefix(shown) + question_suffix(text)}
        if how.chat == "one_message":
            return {"messages": chat_turns(few_shot_message(shown, text))}
        return {"messages": chat_turns(text, shown)}

    return {
        question_id: said(shown, text)
        for shown, group in _groups(questions, asked, how)
        for question_id, text in zip(group["question_id"], group["question"], strict=True)
    }


def _groups(
    questions: pd.DataFrame, asked: pd.DataFrame, how: FewShot
) -> list[tuple[list[tuple[str, str]], pd.DataFrame]]:
    examples = questions[questions["split"] == "few_shot"]
    return few_shot_groups(
        asked, examples, how.n_examples, by_category=how.by_category, place=how.place
    )

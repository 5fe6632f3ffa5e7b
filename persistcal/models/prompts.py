"""Prompts: questions with few-shot examples, in plain text or as a chat."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pandas as pd

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def few_shot_prefix(examples: Iterable[tuple[str, str]]) -> str:
    r"""Return the text before every question: examples with their answers.

    >>> few_shot_prefix([("Capital of Peru?", "Lima"), ("Capital of Mali?", "Bamako")])
    'Prompt: Capital of Peru?\nAnswer: Lima\n\nPrompt: Capital of Mali?\nAnswer: Bamako\n\n'
    """
    return "".join(f"Prompt: {question}\nAnswer: {answer}\n\n" for question, answer in examples)


def few_shot_message(examples: Sequence[tuple[str, str]], question: str) -> str:
    r"""Return the one message that asks a chat model `question`, as the paper's release does.

    >>> print(few_shot_message([("Capital of Peru?", "Lima")], "Capital of Chad?"))
    Here are 1 examples of a prompt and its answer:
    <BLANKLINE>
    Prompt: Capital of Peru?
    Answer: Lima
    <BLANKLINE>
    ---
    <BLANKLINE>
    Now answer this prompt with a concise phrase, as the examples do.
    <BLANKLINE>
    Prompt: Capital of Chad?
    Answer:
    """
    shown = f"Here are {len(examples)} examples of a prompt and its answer:\n\n"
    shown += few_shot_prefix(examples)
    asked = "---\n\nNow answer this prompt with a concise phrase, as the examples do.\n\n"
    return shown + asked + question_suffix(question)


def few_shot_groups(
    asked: pd.DataFrame,
    examples: pd.DataFrame,
    n_examples: int,
    *,
    by_category: bool,
    place: int = 0,
) -> list[tuple[list[tuple[str, str]], pd.DataFrame]]:
    """Split questions into groups with the same few-shot examples.

    Parameters
    ----------
    asked, examples : pandas.DataFrame
        Rows of the table QUESTIONS, in order. An example is answered with its
        first reference.
    n_examples : int
        Number of examples per question; a split with fewer is refused.
    by_category : bool
        Whether examples are from the question's category only.
    place : int, default=0
        Number of groups of `n_examples` examples to skip.
    """
    groups = [("any", examples, asked)]
    if by_category:
        groups = [
            (repr(category), examples[examples["category"] == category], group)
            for category, group in asked.groupby("category")
        ]
    start, stop = place * n_examples, (place + 1) * n_examples
    for category, pool, _ in groups:
        if len(pool) < stop:
            position = f" after {start} others" if start else ""
            raise ValueError(
                f"prompts: few_shot is {n_examples}{position}, but the split few_shot holds "
                f"{len(pool)} questions of {category} category; lower few_shot or enlarge the "
                "split."
            )
    shown = [pool.iloc[start:stop] for _, pool, _ in groups]
    return [
        (list(zip(e["question"], e["references"].str[0], strict=True)), group)
        for e, (_, _, group) in zip(shown, groups, strict=True)
    ]


def question_suffix(question: str) -> str:
    r"""Return the open question that follows the few-shot prefix.

    It ends without a space: the space belongs to the first token of the answer.

    >>> question_suffix("Capital of Chad?")
    'Prompt: Capital of Chad?\nAnswer:'
    """
    return f"Prompt: {question}\nAnswer:"


def confidence_prompt(template: str, question: str, answer: str) -> str:
    """Fill ``{question}`` and ``{answer}`` in `template`; other braces stay unchanged.

    Both are replaced in one pass, so a question with the text "{answer}" stays unchanged.

    >>> confidence_prompt("{question} -> {answer} {%}", "What is {answer}?", "42")
    'What is {answer}? -> 42 {%}'
    """
    values = {"{question}": question, "{answer}": answer}
    return re.sub(r"\{question\}|\{answer\}", lambda match: values[match[0]], template)


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

    The text contains the special tokens of the tokenizer's chat template, so the tokenizer must
    not add any. The error message names the config's `key`.
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
    """Settings of few-shot prompts: the examples from the split few_shot, and their form.

    The examples are the first `n_examples` at `place` 0, the next ones at 1, and so on, each
    with its first reference; with `by_category` they are from the question's category. With an
    empty `chat` they are text before the question, with "turns" earlier turns of a
    conversation, and with "one_message" part of the user's message.
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

    def message(shown: Sequence[tuple[str, str]], text: str) -> dict[str, Any]:
        if not how.chat:
            return {"prompt": few_shot_prefix(shown) + question_suffix(text)}
        if how.chat == "one_message":
            return {"messages": chat_turns(few_shot_message(shown, text))}
        return {"messages": chat_turns(text, shown)}

    return {
        question_id: message(shown, text)
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

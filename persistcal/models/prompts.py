"""Prompts: questions with few-shot examples, in plain text or as a chat."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pandas as pd

from persistcal.questions.templates import fill

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

THOUGHTS = re.compile(r"\A.*</think>", re.DOTALL)  # templates can open them in the prompt
OPEN = "<think>"


def few_shot_prefix(examples: Iterable[tuple[str, str]]) -> str:
    """Return the text before every question: examples with their answers."""
    return "".join(f"Prompt: {question}\nAnswer: {answer}\n\n" for question, answer in examples)


def few_shot_message(examples: Sequence[tuple[str, str]], question: str) -> str:
    """Return one message with the examples and the `question` to a chat model.

    The paper's released code can ask in this form. Whether its headroom was measured so is not
    recorded, and the words are this project's.
    """
    text = f"Here are {len(examples)} examples of a prompt and its answer:\n\n"
    text += few_shot_prefix(examples)
    request = "---\n\nNow answer this prompt with a concise phrase, as the examples do.\n\n"
    return text + request + question_suffix(question)


def question_suffix(question: str) -> str:
    """Return the open question that follows the few-shot prefix.

    It ends without a space: the space belongs to the first token of the answer.
    """
    return f"Prompt: {question}\nAnswer:"


def confidence_prompt(template: str, question: str, answer: str) -> str:
    """Fill ``{question}`` and ``{answer}`` in `template`."""
    return fill(template, {"question": question, "answer": answer})


def confidence_prompts(template: str, answers: pd.DataFrame) -> list[str]:
    """Return the prompt about the question and the answer of each row."""
    pairs = zip(answers["question"], answers["answer"], strict=True)
    return [confidence_prompt(template, *pair) for pair in pairs]


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

    The text contains special tokens, so the tokenizer must not add any. The error message names
    the config's `key`.
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

    With an empty `chat` the examples are text before the question, with "turns" earlier turns
    of a conversation, and with "one_message" part of the user's message.
    """

    n_examples: int
    by_category: bool = False  # whether they are from the question's category
    chat: str = ""
    example_set: int = 0  # set 0 has the first `n_examples`, set 1 the next ones


Group = tuple[list[tuple[str, str]], pd.DataFrame]  # examples, and the rows that follow them


def few_shot_groups(
    questions: pd.DataFrame, ids: pd.DataFrame, few_shot: FewShot
) -> list[Group]:
    """Split `ids` into groups with the same examples, each with its first reference.

    Too few examples are refused.
    """
    examples = questions[questions["split"] == "few_shot"]
    groups = [("any", examples, ids)]
    if few_shot.by_category:
        groups = [
            (repr(category), examples[examples["category"] == category], group)
            for category, group in ids.groupby("category")
        ]
    start = few_shot.example_set * few_shot.n_examples
    stop = start + few_shot.n_examples
    chosen = []
    for category, pool, group in groups:
        if len(pool) < stop:
            position = f" after {start} others" if start else ""
            raise ValueError(
                f"prompts: few_shot is {few_shot.n_examples}{position}, but the split few_shot "
                f"holds {len(pool)} questions of {category} category; lower few_shot or "
                "enlarge the split."
            )
        shown = pool.iloc[start:stop]
        pairs = zip(shown["question"], shown["references"].str[0], strict=True)
        chosen.append((list(pairs), group))
    return chosen


def _chat(
    examples: list[tuple[str, str]], text: str, few_shot: FewShot
) -> tuple[str, list[tuple[str, str]]]:
    """Return the user's message that asks `text`, and the examples in turns before it."""
    return (
        (few_shot_message(examples, text), [])
        if few_shot.chat == "one_message"
        else (text, examples)
    )


def few_shot_prompts(
    tokenizer: "PreTrainedTokenizerBase",
    questions: pd.DataFrame,
    ids: pd.DataFrame,
    few_shot: FewShot,
) -> list[tuple[str, list[str], list[str]]]:
    """Return prefix, suffixes and ids of questions `ids` that are shown the same examples.

    A prompt is ``prefix + suffix``.
    """
    prompts = []
    for examples, group in few_shot_groups(questions, ids, few_shot):
        prefix, suffixes = few_shot_prefix(examples), [*map(question_suffix, group["question"])]
        if few_shot.chat:
            chats = [_chat(examples, text, few_shot) for text in group["question"]]
            key = "the model's chat"
            prefix, suffixes = "", [chat_prompt(tokenizer, *chat, key=key) for chat in chats]
        prompts.append((prefix, suffixes, group["question_id"].tolist()))
    return prompts


def few_shot_bodies(
    questions: pd.DataFrame, ids: pd.DataFrame, few_shot: FewShot
) -> dict[str, dict[str, Any]]:
    """Return the texts and turns of `few_shot_prompts` as a server is asked them, by question.

    A chat's template is put around them by the server.
    """
    bodies: dict[str, dict[str, Any]] = {}
    for examples, group in few_shot_groups(questions, ids, few_shot):
        for question_id, text in zip(group["question_id"], group["question"], strict=True):
            plain = {"prompt": few_shot_prefix(examples) + question_suffix(text)}
            turns = {"messages": chat_turns(*_chat(examples, text, few_shot))}
            bodies[question_id] = turns if few_shot.chat else plain
    return bodies

"""The prompts: few-shot questions and answers, and the request for a confidence."""

import re
from collections.abc import Iterable, Sequence

import pandas as pd


def few_shot_prefix(examples: Iterable[tuple[str, str]]) -> str:
    r"""Return the text that comes before every question: examples with their answers.

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
    """Split questions into groups, each with the examples that it is shown.

    Parameters
    ----------
    asked, examples : pandas.DataFrame
        Rows of the table QUESTIONS, in order. An example is answered with its
        first reference.
    n_examples : int
        So many examples are shown; fewer are refused.
    by_category : bool
        Whether a question is shown examples of its own category only.
    place : int, default=0
        How often so many examples are passed over first.
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
            after = f" after {start} others" if start else ""
            raise ValueError(
                f"prompts: few_shot is {n_examples}{after}, but the split few_shot holds "
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
    """Fill ``{question}`` and ``{answer}`` in `template`; other braces stay as they are.

    Both are replaced in one pass, so a question that itself holds "{answer}" is kept.

    >>> confidence_prompt("{question} -> {answer} {%}", "What is {answer}?", "42")
    'What is {answer}? -> 42 {%}'
    """
    values = {"{question}": question, "{answer}": answer}
    return re.sub(r"\{question\}|\{answer\}", lambda match: values[match[0]], template)

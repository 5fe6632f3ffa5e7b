"""Documents of questions, and how probable their answers are to a model."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.prompts import few_shot_prefix, question_suffix
from persistcal.questions.at_checkpoint import true_at


class Document(NamedTuple):
    """Tokens of a question with its answer, the first `n_prompt` of which are not learnt."""

    tokens: list[int]
    n_prompt: int


def questions_at(questions: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    """Return questions of several datasets with the references that hold at a checkpoint."""
    return pd.concat([true_at(rows, checkpoint) for _, rows in questions.groupby("dataset")])


def of_categories(questions: pd.DataFrame, categories: Sequence[str], key: str) -> pd.DataFrame:
    """Return the questions of `categories`, each of which some question must have."""
    there = questions["category"].unique()
    if unknown := [name for name in categories if name not in there]:
        datasets = ", ".join(questions["dataset"].unique())
        raise ValueError(
            f"config: {key} names {unknown[0]!r}, but no question of {datasets} is of that "
            f"category; there are {', '.join(sorted(map(repr, there)))}."
        )
    return questions[questions["category"].isin(categories)]


def write_documents(
    tokenizer: PreTrainedTokenizerBase, questions: pd.DataFrame
) -> list[Document]:
    """Return each question with its first reference, as examples are shown in prompts.

    The tokens that are learnt are the answer's and those of the blank line that ends it.
    """
    prompts = [question_suffix(text) for text in questions["question"]]
    answers = [references[0] for references in questions["references"]]
    texts = [
        few_shot_prefix([pair]) for pair in zip(questions["question"], answers, strict=True)
    ]
    if not texts:
        return []
    encoded = tokenizer(texts, return_offsets_mapping=True)
    documents = []
    for prompt, tokens, offsets in zip(
        prompts, encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        # A token that ends within the answer is the answer's, wherever it begins.
        learnt = [end > len(prompt) for _, end in offsets]
        documents.append(Document(tokens, learnt.index(True)))
    return documents


def answer_logprobs(model: PreTrainedModel, documents: Sequence[Document]) -> Tensor:
    """Return the log-probability of each document's answer after its question, in nats."""
    longest = max(len(each.tokens) for each in documents)
    tokens = torch.zeros(len(documents), longest, dtype=torch.long)
    there, learnt = torch.zeros_like(tokens), torch.zeros_like(tokens)
    for row, (known, n_prompt) in enumerate(documents):
        tokens[row, : len(known)] = torch.tensor(known)
        there[row, : len(known)] = 1
        learnt[row, n_prompt : len(known)] = 1
    device = next(model.parameters()).device
    tokens, there, learnt = tokens.to(device), there.to(device), learnt.to(device)
    logits = model(input_ids=tokens, attention_mask=there, use_cache=False).logits
    each = cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return -(each * learnt[:, 1:]).sum(dim=1)

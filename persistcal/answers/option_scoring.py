"""Log-probabilities of options after their question, all options of a question in one tree.

The few-shot prefix is encoded once for all questions, and the common start of a question's
options once, so that a question takes one forward pass.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.continuations import measure_distributions
from persistcal.answers.decode import Search, n_at_once
from persistcal.answers.token_trees import (
    Layer,
    PrefixCache,
    Trees,
    encode_prefix,
    shared_prefix_attention,
)
from persistcal.models.batches import Work, in_batches
from persistcal.models.packing import make_tree, n_common


class Choice(NamedTuple):
    """Token ids of the prompt of a question, and of each option."""

    context: list[int]
    options: list[list[int]]


class ScoredOption(NamedTuple):
    """An option as the table BEAMS has it, see `persistcal.answers.decode.Beam`."""

    text: str
    logprob: float
    n_tokens: int
    entropy: float
    self_certainty: float
    margin: float
    min_logprob: float
    unconditional: float | None


def encode_choice(
    tokenizer: PreTrainedTokenizerBase, context: str, options: Sequence[str], *, chat: bool
) -> Choice:
    """Return the tokens of a question and its options as lm-evaluation-harness splits them.

    Context and option are encoded together, and the first tokens, as many as the context has,
    are the context's. White space at its end belongs to the options. A prompt of a `chat`
    contains the special tokens, and its answer has no space in front.
    """
    asked = context.rstrip()
    between = context[len(asked) :] + ("" if chat else " ")
    texts = [asked, *(asked + between + option for option in options)]
    context_tokens, *wholes = tokenizer(texts, add_special_tokens=not chat)["input_ids"]
    choice = Choice(context_tokens, [whole[len(context_tokens) :] for whole in wholes])
    if not context_tokens or not all(choice.options):
        empty = options[choice.options.index([])] if context_tokens else ""
        raise ValueError(
            f"option {empty!r} of the question that ends in {asked[-60:]!r} adds no token to "
            "it, so that it has no log-probability; reword it or the question"
        )
    return choice


@torch.inference_mode()
def score_options(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    contexts: Sequence[str],
    options: Sequence[Sequence[str]],
    search: Search,
    *,
    chat: bool = False,
    progress: Callable[[int], object] | None = None,
    work: Work = Work(),  # noqa: B008 - immutable
) -> list[list[ScoredOption]]:
    """Return the options of each question with their summed log-probabilities.

    `model`, `progress` and `work` are as in `persistcal.answers.decode.generate_beams`.
    `contexts` are complete prompts; `search` determines the number of questions per batch.
    Equal to lm-evaluation-harness 0.4.13: ``loglikelihood`` of (context, " " + option), and
    of ("", " " + option) for `unconditional`.
    """
    if not contexts:
        return []
    asked = [
        encode_choice(tokenizer, context, texts, chat=chat)
        for context, texts in zip(contexts, options, strict=True)
    ]
    begin = tokenizer.bos_token_id
    begin = tokenizer.eos_token_id if begin is None else begin
    alone = []  # options after the token that begins (or ends) texts, if there is one
    for texts in options if begin is not None else []:
        spaced = [option if chat else f" {option}" for option in texts]
        encoded = tokenizer(spaced, add_special_tokens=False)["input_ids"]
        alone.append(Choice([begin], encoded))
    starts = [choice.context[:-1] for choice in asked]
    n_shared = n_common(min(starts), max(starts))
    longest = max(len(c.context) - n_shared + sum(map(len, c.options)) for c in asked)
    rows = 1 + max(sum(map(len, choice.options)) for choice in asked)
    size = n_at_once(model, search, len(asked), longest, rows)

    with shared_prefix_attention(model):
        shared = encode_prefix(model, asked[0].context[:n_shared])

        def compute(part: list[int]) -> list[list[list]]:
            scored = _score(model, shared, n_shared, [asked[i] for i in part])
            if not alone:
                return [[[*row, None] for row in rows] for rows in scored]
            scored_alone = _score(model, [], 0, [alone[i] for i in part])
            return [
                [[*row, row_alone[0]] for row, row_alone in zip(*question, strict=True)]
                for question in zip(scored, scored_alone, strict=True)
            ]

        order = sorted(range(len(asked)), key=lambda i: len(asked[i].context))
        numbers = in_batches(compute, order, batch_size=size, work=work, progress=progress)
    return [
        [ScoredOption(text, *row) for text, row in zip(texts, numbers[i], strict=True)]
        if i in numbers
        else []
        for i, texts in enumerate(options)
    ]


def _score(
    model: PreTrainedModel, shared: list[Layer], n_shared: int, choices: Sequence[Choice]
) -> list[list[tuple[float, ...]]]:
    """Return the numbers of each option as `ScoredOption` has them, but the last one."""
    prompts = [
        [(*choice.context[n_shared:], *option) for option in choice.options]
        for choice in choices
    ]
    trees = [make_tree(sorted(choices_of)) for choices_of in prompts]
    lengths = [len(tree.token_ids) for tree in trees]
    starts = [0, *accumulate(lengths)]
    seen = np.zeros((starts[-1], max(lengths)), dtype=bool)
    steps: list[tuple[int, int]] = []  # a row, and the token that follows it in an option
    owners: list[list[slice]] = []
    for tree, start, choices_of, choice in zip(trees, starts, prompts, choices, strict=False):
        place = np.arange(len(tree.token_ids))
        path = (place <= place[:, None]) & (np.array(tree.until) > place[:, None])
        seen[start : start + len(place), : len(place)] = path
        ends = dict(zip(sorted(choices_of), tree.ends, strict=True))
        slices = []
        for prompt, option in zip(choices_of, choice.options, strict=True):
            predecessors = start + np.flatnonzero(path[ends[prompt]])[-len(option) - 1 : -1]
            first = len(steps)
            steps += zip(predecessors.tolist(), option, strict=True)
            slices.append(slice(first, len(steps)))
        owners.append(slices)

    def there(values: Sequence[int] | np.ndarray) -> Tensor:
        return torch.as_tensor(values, device=model.device)

    cache = PrefixCache(shared, Trees(len(trees), model.device))
    position = np.concatenate([tree.positions for tree in trees]) + n_shared
    cache.trees.plant(
        there(np.repeat(np.arange(len(trees)), lengths)), there(position), lengths
    )
    cache.trees.seen = there(seen)
    rows = sorted({row for row, _ in steps})
    tokens = there([token for tree in trees for token in tree.token_ids])
    logprobs = cache.forward(model, tokens, rows).float().log_softmax(dim=1)
    row = there(np.searchsorted(rows, [row for row, _ in steps]))
    of_token = logprobs[row, there([token for _, token in steps])].tolist()
    measured = measure_distributions(logprobs)[row].T.tolist()

    def numbers(s: slice) -> tuple[float, ...]:
        n, least = s.stop - s.start, min(of_token[s])
        means = (math.fsum(measure[s]) / n for measure in measured)
        return math.fsum(of_token[s]), n, *means, least

    return [[numbers(s) for s in part] for part in owners]

"""Confidence from a model's next-token probabilities, for ten digits or for one word.

Verbalised confidence is the mean digit that a model would answer, over nine. The logits of the
ten digits at the end of a confidence prompt, and nothing else of the vocabulary, make it.

A verifier, a separate model, is asked whether answers are right. The confidence is the
probability of one word, such as "yes", among the whole vocabulary. The probabilities of other
words, "no" and "Yes" included, do not count. This follows the authors of generalized
correctness models (Xiao et al., "Generalized Correctness Models: Learning Calibrated and
Model-Agnostic Correctness Predictors from Historical Patterns", 2025, arXiv:2509.24988).
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.batches import Work
from persistcal.models.packing import BatchSize, check_logits, over_prompts, pack, size_of_batch
from persistcal.models.prompts import chat_prompt, confidence_prompt

PIECES_PER_GPU = 2  # pieces of a batch, for a model that is split over several GPUs

MARGIN = 1e-6  # confidences stay this far from 0 and 1

Head = Literal["float32", "model"]  # precision of the digits' logits


def digit_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids of the digits 0 to 9; each digit must be one token."""
    remedy = "verbalised confidence needs a model whose tokenizer has each digit as one token."
    return [_only_token(tokenizer, "digit", digit, remedy) for digit in "0123456789"]


def word_token(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Return the token of `word`, leading space included; several are refused."""
    remedy = (
        "give a word that is one token, with the space before it if the prompt ends without "
        "one."
    )
    return _only_token(tokenizer, "word", word, remedy)


def _only_token(tokenizer: PreTrainedTokenizerBase, kind: str, text: str, remedy: str) -> int:
    ids = tokenizer.encode(text, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise ValueError(
            f"Tokenizer {tokenizer.name_or_path!r} splits the {kind} {text!r} into "
            f"{tokenizer.convert_ids_to_tokens(ids)}; {remedy}"
        )
    return ids[0]


def tokenise(
    tokenizer: PreTrainedTokenizerBase, prompts: Iterable[str]
) -> dict[str, list[int]]:
    """Return the token ids of every distinct prompt."""
    distinct = list(dict.fromkeys(prompts))
    return (
        dict(zip(distinct, tokenizer(distinct)["input_ids"], strict=True)) if distinct else {}
    )


@functools.cache
def _on_device(ids: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the same few token ids again and again, copied to a GPU once."""
    with torch.inference_mode(False):
        return torch.tensor(ids, device=device)


def digit_logits(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    digits: Sequence[int],
    head: Head = "float32",
) -> Tensor:
    """Return the float32 logits of the ten digits after each prompt: (n_prompts, 10).

    They equal the logits of a separate full forward pass of each prompt, which
    `check_digit_logits` verifies for a model. A common start of prompts is encoded once.
    `head` is the dtype of the last layer: float32, or the model's, which rounds the logits.
    """
    # If a model is split, one GPU computes a piece while another has the next, and the code
    # here does not wait for the last one. Four pieces on two GPUs take 5 / 8 of the time of
    # one.
    n_gpus = len({*getattr(model, "hf_device_map", {"": 0}).values()})
    n_pieces = min(len(prompts), PIECES_PER_GPU * n_gpus) if n_gpus > 1 else 1
    ends = [len(prompts) * i // n_pieces for i in range(n_pieces + 1)]
    last = []
    for start, end in pairwise(ends):
        packed = pack(model, prompts[start:end])
        last.append(packed.last_tokens(model.get_decoder()(**packed.inputs).last_hidden_state))
    weights = model.get_output_embeddings().weight
    weights = weights[_on_device(tuple(digits), weights.device)]
    hidden = (torch.cat(last) if len(last) > 1 else last[0]).to(weights.device)
    if head == "float32":
        hidden, weights = hidden.float(), weights.float()
    return nn.functional.linear(hidden, weights.to(hidden.dtype)).float()


def confidence_of(logits: Tensor) -> Tensor:
    """Return the expected digit over nine: shape (n, 10) to (n,), in [0, 1].

    All mass on 9, then equal mass on 0 and 3, which is 1.5 / 9:

    >>> off = -1000.0
    >>> logits = torch.tensor([[off] * 9 + [0.0], [0.0] + [off] * 2 + [0.0] + [off] * 6])
    >>> confidence_of(logits)
    tensor([1.0000, 0.1667])
    """
    digits = torch.arange(10, dtype=logits.dtype, device=logits.device)
    return logits.softmax(-1) @ (digits / 9)


def clamp_straight_through(confidence: Tensor) -> Tensor:
    """Clamp to [1e-6, 1 - 1e-6]; the gradient passes as if it were not clamped."""
    return confidence + (confidence.clamp(MARGIN, 1 - MARGIN) - confidence).detach()


@torch.inference_mode()
def check_digit_logits(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], digits: Sequence[int]
) -> None:
    """Refuse a model if its full forward pass differs from `digit_logits`."""
    check_logits(model, prompts, digit_logits(model, prompts, digits), list(digits))


@dataclass(frozen=True)
class HowScored:
    """The config's settings for scores of adapters, in the predictions on a split."""

    split: str
    prompt: str  # template of the confidence prompt
    batch_size: BatchSize
    head: Head
    dtype: str  # see `persistcal.models.load.open_model`


@torch.inference_mode()
def score_answers(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    digits: Sequence[int],
    *,
    batch_size: BatchSize,
    head: Head = "float32",
    work: Work = Work(),  # noqa: B008 - immutable
) -> np.ndarray:
    """Return the verbalised confidence at the end of each prompt, in [1e-6, 1 - 1e-6].

    It is NaN for prompts outside `work`: the batches to score, all by default, and the storage
    of scores. Results do not depend on `batch_size` beyond rounding. See `digit_logits` for the
    other parameters.
    """

    def score(batch: list[Sequence[int]]) -> Tensor:
        return confidence_of(digit_logits(model, batch, digits, head))

    size = size_of_batch(batch_size, model, prompts)
    scores = over_prompts(score, prompts, batch_size=size, desc="scoring", work=work)
    return scores.clip(MARGIN, 1 - MARGIN)


@dataclass(frozen=True)
class VerifierPrompt:
    """The config's request for a verdict."""

    template: str  # with ``{question}`` and ``{answer}``
    # Whether it is a user's message in the tokenizer's chat template, without thinking, instead
    # of plain text that the verifier continues
    chat_template: bool
    word: str  # the verifier's word for right answers

    def token_ids(
        self, tokenizer: PreTrainedTokenizerBase, question: str, answer: str
    ) -> list[int]:
        """Return the token ids of the request about an answer."""
        text = confidence_prompt(self.template, question, answer)
        if not self.chat_template:
            return tokenizer(text)["input_ids"]
        filled = chat_prompt(tokenizer, text, key="the verifier's chat_template")
        return tokenizer(filled, add_special_tokens=False)["input_ids"]


def next_logits(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Tensor:
    """Return the model's own logits after each prompt: shape (n_prompts, vocab_size).

    A common start of prompts is encoded once.
    """
    packed = pack(model, prompts)

    def last_tokens(_head: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        [hidden] = inputs
        return (packed.last_tokens(hidden)[None],)

    # Select positions before the head: logits at all positions would need the most memory.
    hook = model.get_output_embeddings().register_forward_pre_hook(last_tokens)
    try:
        return model(**packed.inputs).logits[0]
    finally:
        hook.remove()


@torch.inference_mode()
def word_probability(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    token: int,
    *,
    batch_size: int,
) -> np.ndarray:
    """Return the probability among the whole vocabulary that `token` follows each prompt.

    Prompts are token ids, `batch_size` of them in a forward pass. A model is refused if its
    results for packed prompts and for single prompts differ.
    """

    def probabilities(batch: list[Sequence[int]]) -> Tensor:
        return next_logits(model, batch).double().softmax(-1)[:, token]

    check_logits(model, prompts[:2], next_logits(model, prompts[:2]))
    return over_prompts(probabilities, prompts, batch_size=batch_size, desc="rating")

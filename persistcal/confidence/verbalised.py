"""Verbalised confidence: the mean digit that a model would answer, over nine.

The next-token logits of the ten digits at the end of a confidence prompt, and
nothing else of the vocabulary, make the confidence.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.batches import Work
from persistcal.models.packing import check_logits, over_prompts, pack

PIECES_PER_GPU = 2  # pieces of a batch, for a model that is split over several GPUs

MARGIN = 1e-6  # confidences stay this far from 0 and 1

Head = Literal["float32", "model"]  # precision of the digits' logits


def digit_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids of the digits 0 to 9; each digit must be one token."""
    digits = []
    for digit in "0123456789":
        ids = tokenizer.encode(digit, add_special_tokens=False)
        if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
            raise ValueError(
                f"Tokenizer {tokenizer.name_or_path!r} splits the digit {digit!r} into "
                f"{tokenizer.convert_ids_to_tokens(ids)}; verbalised confidence needs a "
                "model whose tokenizer has each digit as one token."
            )
        digits.append(ids[0])
    return digits


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
    """Return the logits of the ten digits after each prompt.

    Parameters
    ----------
    prompts : sequence of sequence of int
        Token ids. A common start of prompts is encoded once.
    digits : sequence of int
        Token ids of `digit_tokens`.
    head : {"float32", "model"}
        The dtype of the last layer: float32, or the model's own dtype, in which its logits
        are rounded.

    Returns
    -------
    Tensor of float32, shape (n_prompts, 10)
        Equal to the logits of a separate full forward pass of each prompt;
        `check_digit_logits` verifies this for a model.
    """
    # Of a model that is split, one GPU computes a piece while another has the next: nothing
    # here waits for the last one. Four pieces on two GPUs take 5 / 8 of the time of one.
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
    batch_size: int
    head: Head
    precision: str  # see `persistcal.models.load.open_model`


@torch.inference_mode()
def score_answers(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    digits: Sequence[int],
    *,
    batch_size: int,
    head: Head = "float32",
    work: Work = Work(),  # noqa: B008 - immutable
) -> np.ndarray:
    """Return the verbalised confidence at the end of each prompt.

    Parameters
    ----------
    prompts, digits, head
        As for `digit_logits`.
    batch_size : int
        Prompts in a forward pass; results do not depend on it beyond rounding.
    work : Work, optional
        The batches to score, all by default, and the storage of their scores.

    Returns
    -------
    ndarray of float64, shape (n_prompts,)
        In [1e-6, 1 - 1e-6]; NaN for a prompt whose batch is not part of `work`.

    Raises
    ------
    FloatingPointError
        When a confidence is not a number.
    """

    def score(batch: list[Sequence[int]]) -> Tensor:
        return confidence_of(digit_logits(model, batch, digits, head))

    scores = over_prompts(score, prompts, batch_size=batch_size, desc="scoring", work=work)
    return scores.clip(MARGIN, 1 - MARGIN)

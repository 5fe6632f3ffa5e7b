"""Score answers: the confidence that a model with an adapter verbalises."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from persistcal.confidence.packed_forward import over_prompts
from persistcal.confidence.verbalised import MARGIN, Head, confidence_of, digit_logits
from persistcal.models.batches import Work


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
        Which batches are scored, all by default, and what keeps their scores.

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

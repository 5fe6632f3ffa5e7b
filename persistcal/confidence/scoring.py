"""Score answers: the confidence that a model with an adapter verbalises."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from persistcal.confidence.verbalised import MARGIN, Head, confidence_of, digit_logits
from persistcal.models.batches import Work, in_batches
from persistcal.store.pace import Pace


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
    model : PreTrainedModel
        With or without an adapter.
    prompts : sequence of sequence of int
        Token ids of the confidence prompts.
    digits : sequence of int
        Token ids of the ten digits.
    batch_size : int
        Prompts in a forward pass; results do not depend on it beyond rounding.
    head : {"float32", "model"}
        As for `persistcal.confidence.verbalised.digit_logits`.
    work : Work, optional
        Which batches are scored, all by default, and what keeps their scores.

    Returns
    -------
    ndarray of float64, shape (n_prompts,)
        In [1e-6, 1 - 1e-6]; NaN for a prompt whose batch is not part of `work`.

    Raises
    ------
    MemoryError
        When a single prompt does not fit into the GPU's memory; of a batch that does
        not, the halves are scored one after the other.
    FloatingPointError
        When a confidence is not a number.
    """

    def score(batch: list[int]) -> list[float]:
        logits = digit_logits(model, [prompts[i] for i in batch], digits, head)
        return confidence_of(logits).double().tolist()

    # Those that begin alike go into one batch.
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    scores = np.full(len(prompts), np.nan)
    with Pace(total=len(order), desc="scoring", unit=" answers") as bar:
        scored = in_batches(score, order, batch_size=batch_size, work=work, progress=bar.update)
    scores[list(scored)] = list(scored.values())
    if np.isnan(list(scored.values())).any():
        raise FloatingPointError(
            "The model's logits are not finite, so it states no confidence; check the adapter "
            "or use another dtype."
        )
    return scores.clip(MARGIN, 1 - MARGIN)

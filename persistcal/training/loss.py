"""Compute the gradient of a training step over checkpoints, micro-batches and ranks."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm
from transformers import PreTrainedModel

from persistcal.confidence.verbalised import (
    Head,
    clamp_straight_through,
    confidence_of,
    digit_logits,
)
from persistcal.models.batches import free_memory
from persistcal.store.jobs import is_full
from persistcal.training.data import TrainingQuestion
from persistcal.training.lora import Adapter
from persistcal.training.ranks import sum_over_ranks

log = logging.getLogger(__name__)


class Trainee(NamedTuple):
    """Checkpoints with a common adapter, and the tokens of the training prompts."""

    models: Mapping[str, PreTrainedModel]  # by checkpoint name
    adapter: Adapter
    tokens: Mapping[str, list[int]]  # by prompt
    digits: Sequence[int]  # and head: see `persistcal.confidence.verbalised.digit_logits`
    head: Head = "float32"


def question_losses(
    model: PreTrainedModel,
    questions: Sequence[TrainingQuestion],
    tokens: Mapping[str, list[int]],
    digits: Sequence[int],
    head: Head = "float32",
) -> Tensor:
    """Return the summed loss of `questions`: weighted binary cross-entropies.

    `tokens`, `digits` and `head` are as in `Trainee`.
    """
    prompts = [tokens[prompt] for q in questions for prompt in q.prompts]
    logits = digit_logits(model, prompts, digits, head)
    confidence = clamp_straight_through(confidence_of(logits))
    targets = [[weight for q in questions for weight in q.weights]]
    targets += [[label for q in questions for label in q.labels]]
    weights, labels = confidence.new_tensor(targets)
    log_likelihood = labels * confidence.log() + (1 - labels) * (1 - confidence).log()
    return -(weights * log_likelihood).sum()


def _micro_batches(
    questions: Sequence[TrainingQuestion], tokens: Mapping[str, list[int]], size: int
) -> Iterator[Sequence[TrainingQuestion]]:
    """Yield questions with similar beginnings, at most `size` candidates or one question."""
    part: list[TrainingQuestion] = []
    for question in sorted(questions, key=lambda q: [tokens[prompt] for prompt in q.prompts]):
        if part and sum(len(q.prompts) for q in [*part, question]) > size:
            yield part
            part = []
        part.append(question)
    if part:
        yield part


def accumulate_gradients(
    trainee: Trainee,
    batch: Mapping[str, Sequence[TrainingQuestion]],
    *,
    divisor: float,
    micro_batch: int,
) -> dict[str, float]:
    """Add the gradient of one step to the adapter's; return each checkpoint's loss.

    Parameters
    ----------
    batch : mapping of str to sequence of TrainingQuestion
        The step's questions for each checkpoint; other ranks' checkpoints are ignored.
    divisor : float
        Divisor of the losses: number of checkpoints times questions per step.
    micro_batch : int
        Largest number of candidates in a forward pass; it changes memory, not results.

    Returns
    -------
    dict of str to float
        NaN for the first checkpoint with a loss or gradient that is not finite.
    """
    sums = []  # loss of each checkpoint, and norm of the gradient so far
    device = trainee.adapter.whole[0].device
    for checkpoint, model in trainee.models.items():
        total = torch.zeros((), device=device)
        for part in _micro_batches(batch[checkpoint], trainee.tokens, micro_batch):
            loss = question_losses(model, part, *trainee[2:]) / divisor
            loss.backward()
            total += loss.detach().to(device)
        norm = get_total_norm([cast(Tensor, whole.grad) for whole in trainee.adapter.whole])
        sums += [total, norm.to(device)]
    # Read together, because each reading waits for the GPU.
    losses, norms = torch.stack(sums).view(-1, 2).T.tolist()
    loss_of = dict(zip(trainee.models, losses, strict=True))
    for checkpoint, norm in zip(loss_of, norms, strict=True):
        if not math.isfinite(loss_of[checkpoint] + norm):
            return loss_of | {checkpoint: math.nan}
    return loss_of


def joint_gradient(
    trainee: Trainee,
    batch: Mapping[str, Sequence[TrainingQuestion]],
    *,
    divisor: float,
    micro_batch: int,
) -> tuple[dict[str, float], int]:
    """Set the adapter's gradient to the gradient of one step, summed over all ranks.

    Parameters are as in `accumulate_gradients`; `batch` contains the checkpoints of all ranks.
    If one rank runs out of memory, all ranks repeat the step with half the micro-batch. The
    ranks share this information in the same collective operation as the gradients.

    Returns
    -------
    losses : dict of str to float
        Losses of all ranks' checkpoints.
    micro_batch : int
        Micro-batch that fits into memory, for this and the following steps.

    Raises
    ------
    MemoryError
        If a single question does not fit.
    """
    while True:
        trainee.adapter.clear_gradients()
        losses, out_of_memory = {}, False
        try:
            losses = accumulate_gradients(
                trainee, batch, divisor=divisor, micro_batch=micro_batch
            )
        except RuntimeError as error:
            if not is_full(error):
                raise
            out_of_memory = True
        if out_of_memory:
            free_memory()
        notes = torch.tensor([float(out_of_memory), *(losses.get(name, 0.0) for name in batch)])
        gradients = [cast(Tensor, whole.grad) for whole in trainee.adapter.whole]
        sum_over_ranks([*gradients, notes])
        if not notes[0]:
            return dict(zip(batch, notes[1:].tolist(), strict=True)), micro_batch
        if micro_batch == 1:
            raise MemoryError(
                "A single training question does not fit into the GPU's memory; use a larger "
                "GPU, or several that share the model."
            )
        micro_batch //= 2
        log.warning(
            "A micro-batch does not fit into the GPU's memory; going on with %d candidates",
            micro_batch,
        )

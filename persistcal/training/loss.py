"""The gradient of one training step, over checkpoints, micro-batches and ranks."""

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
    """Checkpoints that share one adapter, and the tokens of its training prompts."""

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
    known = [[weight for q in questions for weight in q.weights]]
    known += [[label for q in questions for label in q.labels]]
    weights, labels = confidence.new_tensor(known)
    log_likelihood = labels * confidence.log() + (1 - labels) * (1 - confidence).log()
    return -(weights * log_likelihood).sum()


def _micro_batches(
    questions: Sequence[TrainingQuestion], tokens: Mapping[str, list[int]], size: int
) -> Iterator[Sequence[TrainingQuestion]]:
    """Yield `questions` that begin alike, at most `size` candidates or one question a time."""
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
        The step's questions as each checkpoint sees them; those of checkpoints that
        other ranks have are left out.
    divisor : float
        The losses are divided by it: checkpoints times questions a step.
    micro_batch : int
        Candidates in a forward pass at most; it changes memory, not results.

    Returns
    -------
    dict of str to float
        NaN for the first checkpoint whose loss or gradient is not finite.
    """
    standing = []  # loss of each checkpoint, and whether the gradient so far is finite
    device = trainee.adapter.whole[0].device
    for checkpoint, model in trainee.models.items():
        total = torch.zeros((), device=device)
        for part in _micro_batches(batch[checkpoint], trainee.tokens, micro_batch):
            loss = question_losses(model, part, *trainee[2:]) / divisor
            loss.backward()
            total += loss.detach().to(device)
        norm = get_total_norm([cast(Tensor, whole.grad) for whole in trainee.adapter.whole])
        standing += [total, norm.to(device)]
    # Read at once, because each reading waits for the GPU.
    losses, norms = torch.stack(standing).view(-1, 2).T.tolist()
    found = dict(zip(trainee.models, losses, strict=True))
    for checkpoint, norm in zip(found, norms, strict=True):
        if not math.isfinite(found[checkpoint] + norm):
            return found | {checkpoint: math.nan}
    return found


def joint_gradient(
    trainee: Trainee,
    batch: Mapping[str, Sequence[TrainingQuestion]],
    *,
    divisor: float,
    micro_batch: int,
) -> tuple[dict[str, float], int]:
    """Set the adapter's gradient to that of one step, summed over all ranks.

    Parameters are as in `accumulate_gradients`; `batch` holds the checkpoints of all ranks.
    Whether one ran out of memory travels with the gradients, in the same collective: then all
    of them repeat the step with half the micro-batch.

    Returns
    -------
    losses : dict of str to float
        Of the checkpoints of all ranks.
    micro_batch : int
        What did fit into memory, also for the steps that follow.

    Raises
    ------
    MemoryError
        When a single question does not fit.
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
                "One training question alone does not fit into the GPU's memory; use a larger "
                "GPU, or several that share the model."
            )
        micro_batch //= 2
        log.warning(
            "A micro-batch does not fit into the GPU's memory; going on with %d candidates",
            micro_batch,
        )

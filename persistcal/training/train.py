"""Train one confidence adapter on several checkpoints of a model jointly."""

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.verbalised import Head, check_digit_logits, digit_tokens, tokenise
from persistcal.store.progress import Pace, Progress, Snapshot
from persistcal.training.data import Questions, learning_rate, question_batches
from persistcal.training.lora import Adapter, initialise, share_adapter
from persistcal.training.loss import Trainee, joint_gradient
from persistcal.training.ranks import check_equal, copy_from_first, index

log = logging.getLogger(__name__)

MAX_GRADIENT_NORM = 1.0
MOMENTS = ("exp_avg", "exp_avg_sq")  # of AdamW
# cuDNN's attention had gradients that were not finite on one generation of GPUs.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True)
class Design:
    """Size of an adapter, and how confidences are computed while it is trained."""

    lora_rank: int  # and alpha: see `persistcal.training.lora.share_adapter`
    alpha: int
    head: Head  # see `persistcal.confidence.verbalised.digit_logits`
    precision: str  # see `persistcal.models.load.open_model`


@dataclass(frozen=True)
class Optimisation:
    """Settings of an adapter's optimisation."""

    lr: float  # peak of `persistcal.training.data.learning_rate`
    epochs: int
    batch_size: int  # questions of a step
    micro_batch: int  # candidates in a forward pass at most; halved where memory is too small


def prepare(
    models: Mapping[str, PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    sources: Iterable[Questions],
    *,
    rank: int,
    alpha: int,
    head: Head = "float32",
) -> Trainee:
    """Put one adapter into all `models`, in place, and tokenise the prompts of `sources`."""
    questions = [question for source in sources for question in source.values()]
    if not questions:
        raise ValueError("No training question has an answer; check the split and the beams.")
    digits = digit_tokens(tokenizer)
    tokens = tokenise(tokenizer, (prompt for q in questions for prompt in q.prompts))
    adapter = share_adapter(models.values(), rank=rank, alpha=alpha)
    examples = [tokens[prompt] for question in questions[:2] for prompt in question.prompts]
    for model in models.values():
        check_digit_logits(model, examples, digits)
    check_equal("linear layers", [(name, p.shape) for name, p in adapter.items()])
    return Trainee(models, adapter, tokens, digits, head)


def train_adapter(
    trainee: Trainee,
    data: Mapping[str, Questions],
    question_ids: Sequence[str],
    how: Optimisation,
    *,
    seed: int,
    work: Progress | None = None,
) -> pd.DataFrame:
    r"""Train the adapter of `trainee` from the initialisation of `seed`.

    A step minimises, with AdamW and the gradient's norm clipped to 1,

    .. math:: \frac{1}{BM} \sum_{q} \sum_{c} \sum_{a} w_{qca}
              \mathrm{BCE}(p_{qca}, z_{qca})

    over its questions q, the M checkpoints c and the candidates a of q at c, with
    weights w that sum to one. B is `how.batch_size` also for a smaller last batch, and
    M includes checkpoints without an answer to q, so the weight of a question at a
    checkpoint does not depend on other checkpoints.

    Parameters
    ----------
    trainee : Trainee
        From `prepare`; its adapter contains the result afterwards. Several ranks divide the
        checkpoints, and all have the same adapter at the end.
    data : mapping of str to Questions
        The questions of each checkpoint, from `persistcal.training.data.recipe_data`.
    question_ids : sequence of str
        Every training question in canonical order, with or without answers.
    work : Progress, optional
        Stores the state; only the first of several ranks has it.

    Returns
    -------
    DataFrame
        Columns of the table TRAINING: step, loss (mean over the step's
        questions), lr and seconds since the start. Empty on other ranks than the first.

    Raises
    ------
    FloatingPointError
        When a loss or gradient is not finite: names step, checkpoint, questions.
    """
    answered = {question_id for questions in data.values() for question_id in questions}
    batches = question_batches(
        question_ids,
        answered,
        seed=seed,
        epochs=how.epochs,
        batch_size=how.batch_size,
    )
    if not batches:
        raise ValueError("No training question has an answer; check the split and the beams.")
    initialise(trainee.adapter, seed)
    optimizer = AdamW(
        trainee.adapter.whole, lr=how.lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01
    )
    saved = work.read_snapshot(f"seed{seed}") if work else None
    done, rows, micro_batch = _restore(trainee.adapter, optimizer, saved, how.micro_batch)
    start = time.perf_counter() - (rows[-1][-1] if rows else 0.0)
    steps = range(done, len(batches))
    for step in Pace(steps, f"seed {seed}", unit=" steps", disable=index() > 0):
        ids = batches[step]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(batches), how.lr)
        with sdpa_kernel(ATTENTION):
            losses, micro_batch = joint_gradient(
                trainee,
                {name: [seen[i] for i in ids if i in seen] for name, seen in data.items()},
                divisor=len(data) * how.batch_size,
                micro_batch=micro_batch,
            )
        if bad := [name for name, loss in losses.items() if not math.isfinite(loss)]:
            raise FloatingPointError(
                f"Step {step}: the loss or its gradient at checkpoint {bad[0]!r} is not finite "
                f"(questions {', '.join(ids)}); lower the learning rate or use another dtype."
            )
        clip_grad_norm_(trainee.adapter.whole, MAX_GRADIENT_NORM)
        optimizer.step()
        loss = sum(losses.values()) * how.batch_size / len(ids)
        rows.append((step, loss, optimizer.param_groups[0]["lr"], time.perf_counter() - start))
        if work and (work.is_due or step == steps[-1]):
            state = _take_snapshot(trainee.adapter, optimizer, rows, micro_batch)
            work.write_snapshot(f"seed{seed}", state)
            log.info("Seed %d: %d of %d steps, loss %.3f", seed, step + 1, len(batches), loss)
    return pd.DataFrame(rows, columns=["step", "loss", "lr", "seconds"])


def _tensors(adapter: Adapter, optimizer: AdamW) -> dict[str, Tensor]:
    moments = {
        f"{name}.{moment}": part
        for moment in MOMENTS
        for name, part in adapter.parts(
            optimizer.state[whole][moment] for whole in adapter.whole
        ).items()
    }
    return {name: parameter.detach() for name, parameter in adapter.items()} | moments


def _take_snapshot(
    adapter: Adapter, optimizer: AdamW, rows: list[Any], micro_batch: int
) -> Snapshot:
    """Return the state after as many steps as there are `rows` of history."""
    record = {"rows": rows, "micro_batch": micro_batch}
    return Snapshot(_tensors(adapter, optimizer), record)


def _restore(
    adapter: Adapter, optimizer: AdamW, snapshot: Snapshot | None, micro_batch: int
) -> tuple[int, list[Any], int]:
    """Put all ranks into the state of the snapshot that rank 0 has, if it has one.

    Returned are the steps that are done, their history (empty on other ranks than 0) and the
    micro-batch of the snapshot; without one, as given.
    """
    rows = snapshot.record["rows"] if snapshot else []
    if snapshot:
        micro_batch = snapshot.record["micro_batch"]
    standing = torch.tensor([len(rows), micro_batch])
    copy_from_first([standing])
    n_steps, micro_batch = standing.tolist()
    if n_steps:
        for whole in adapter.whole:
            moments = {moment: torch.zeros_like(whole) for moment in MOMENTS}
            optimizer.state[whole] = {"step": torch.tensor(float(n_steps)), **moments}
        tensors = _tensors(adapter, optimizer)
        if snapshot:
            for name, tensor in tensors.items():
                tensor.copy_(snapshot.tensors[name])
        copy_from_first(list(tensors.values()))
    return n_steps, rows, micro_batch

"""Train one confidence adapter on several checkpoints of a model jointly.

The checkpoints are of one architecture. Each has peft's LoRA layers on all linear layers except
the LM head, and all share the same tensors A and B, not copies, so that autograd sums their
gradients over the models. Nothing else is trained. The gradient of a step is also summed over
micro-batches and ranks.
"""

import json
import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.optim import AdamW
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.verbalised import (
    Head,
    check_digit_logits,
    clamp_straight_through,
    confidence_of,
    digit_logits,
    digit_tokens,
    tokenise,
)
from persistcal.models.batches import free_memory
from persistcal.models.checkpoint import ADAPTER, ADAPTER_CONFIG
from persistcal.models.packing import pack_prompts
from persistcal.models.sizes import TRAINED_ON_CPU, candidates_at_once, shape_of
from persistcal.store.jobs import is_full
from persistcal.store.progress import MADE_FROM, Pace, Progress, Seeds, Snapshot, seal
from persistcal.training.data import (
    Questions,
    TrainingQuestion,
    learning_rate,
    question_batches,
)
from persistcal.training.ranks import check_equal, copy_from_first, index, sum_over_ranks

log = logging.getLogger(__name__)

MAX_GRADIENT_NORM = 1.0
MOMENTS = ("exp_avg", "exp_avg_sq")  # of AdamW
# cuDNN's attention had gradients that were not finite on one generation of GPUs.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True)
class Design:
    """Size of an adapter, and how confidences are computed while it is trained."""

    lora_rank: int  # and alpha: see `share_adapter`
    alpha: int
    head: Head  # see `persistcal.confidence.verbalised.digit_logits`
    dtype: str  # see `persistcal.models.load.open_model`


@dataclass(frozen=True)
class Optimisation:
    """Settings of an adapter's optimisation."""

    lr: float  # peak of `persistcal.training.data.learning_rate`
    epochs: int
    batch_size: int  # questions of a step
    # Candidates in a forward pass at most, halved where memory is too small; `auto` is 32 on a
    # CPU, and as many as fit on a GPU.
    micro_batch: int | Literal["auto"]


class Adapter(dict[str, nn.Parameter]):
    """Parameters by name within the model, such as "….q_proj.lora_A": zeros of float32.

    The parameters of a device are views of one tensor in `whole`, and so are their gradients,
    so that optimizer, norms and sums over ranks need few kernels.
    """

    def __init__(self, layout: Mapping[str, tuple[Sequence[int], torch.device | str]]) -> None:
        places: dict[torch.device, list[str]] = {}
        for name, (_, device) in layout.items():
            places.setdefault(torch.device(device), []).append(name)
        self._layout = {
            device: {name: torch.Size(layout[name][0]) for name in names}
            for device, names in places.items()
        }
        sizes = [sum(shape.numel() for shape in s.values()) for s in self._layout.values()]
        self.whole = [torch.zeros(n, device=d) for n, d in zip(sizes, places, strict=True)]
        for whole in self.whole:
            whole.grad = torch.zeros_like(whole)
        parts = self.parts(self.whole)
        super().__init__((name, nn.Parameter(parts[name])) for name in layout)
        self.clear_gradients()

    def parts(self, whole: Iterable[Tensor]) -> dict[str, Tensor]:
        """Return views of tensors with the layout of `whole`, by the parameters' names."""
        views = {}
        for tensor, shapes in zip(whole, self._layout.values(), strict=True):
            pieces = tensor.split([shape.numel() for shape in shapes.values()])
            for (name, shape), piece in zip(shapes.items(), pieces, strict=True):
                views[name] = piece.view(shape)
        return views

    def clear_gradients(self) -> None:
        """Set all gradients to zero."""
        gradients = [cast(Tensor, whole.grad).zero_() for whole in self.whole]
        for name, gradient in self.parts(gradients).items():
            self[name].grad = gradient


def park(model: PreTrainedModel) -> PreTrainedModel:
    """Move the weights of `model`, in place, to main memory, for `present`."""
    for parameter in model.parameters():
        stored = parameter.data.cpu()
        parameter.data = stored.pin_memory() if torch.cuda.is_available() else stored
    return model


@contextmanager
def present(model: PreTrainedModel, device: torch.device | None) -> Iterator[None]:
    """Have copies of parked weights on `device` during a block; None changes nothing.

    Weights that the block changes on the device are lost.
    """
    parked = [] if device is None else [p for p in model.parameters() if p.device != device]
    stored = [parameter.data for parameter in parked]
    try:
        for parameter in parked:
            parameter.data = parameter.data.to(device, copy=True, non_blocking=True)
        yield
    finally:
        for parameter, data in zip(parked, stored, strict=True):
            parameter.data = data


def share_adapter(
    models: Iterable[PreTrainedModel],
    *,
    rank: int,
    alpha: int,
    device: torch.device | None = None,
) -> Adapter:
    """Put one adapter into all `models`, in place, and return its parameters.

    They are on `device`, or by default where the layers are.

    They are checkpoints of one architecture, each layer on the same device in all of them. The
    adapter adds ``alpha / rank * B A`` to each weight. It is of float32 whatever the dtype of
    the models, and all zero until `initialise`.
    """
    shared: Adapter | None = None
    for number, model in enumerate(models, start=1):
        model.requires_grad_(False)
        config = LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear")
        # On the meta device, because peft's own values are replaced at once.
        inject_adapter_in_model(config, model, low_cpu_mem_usage=True)
        factors, layout = {}, {}
        for name, layer in model.named_modules():
            if isinstance(layer, LoraLayer):
                place = device or cast(Tensor, layer.get_base_layer().weight).device
                for part in ("lora_A", "lora_B"):
                    factor = factors[f"{name}.{part}"] = getattr(layer, part)["default"]
                    layout[f"{name}.{part}"] = factor.weight.shape, place
        shared = Adapter(layout) if shared is None else shared
        shapes = {name: shape for name, (shape, _) in layout.items()}
        if shapes != {name: parameter.shape for name, parameter in shared.items()}:
            raise ValueError(
                f"Checkpoint {number} of the adapter does not have the linear layers of the "
                "first one; train together only checkpoints of one architecture."
            )
        for name, factor in factors.items():
            factor.weight = shared[name]
    assert shared is not None, "no models"
    return shared


@torch.no_grad()
def initialise(adapter: Mapping[str, nn.Parameter], seed: int) -> None:
    r"""Set A to draws from U(-1/√n, 1/√n), n the layer's inputs, and B to zero.

    The distribution is peft's default. The draws depend only on the seed and the parameter's
    name, never on the models or torch's global generator.
    """
    for name, parameter in adapter.items():
        if name.endswith("lora_B"):
            parameter.zero_()
            continue
        generator = np.random.default_rng([seed, *name.encode()])
        bound = 1 / math.sqrt(parameter.shape[1])
        parameter.copy_(torch.from_numpy(generator.uniform(-bound, bound, parameter.shape)))


class Trainee(NamedTuple):
    """Checkpoints with a common adapter, and the tokens of the training prompts."""

    models: Mapping[str, PreTrainedModel]  # by checkpoint name
    adapter: Adapter
    tokens: Mapping[str, list[int]]  # by prompt
    digits: Sequence[int]  # and head: see `persistcal.confidence.verbalised.digit_logits`
    head: Head = "float32"
    device: torch.device | None = None  # of the computation, if `models` are parked


def prepare(
    models: Mapping[str, PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    sources: Iterable[Questions],
    *,
    rank: int,
    alpha: int,
    head: Head = "float32",
    device: torch.device | None = None,
) -> Trainee:
    """Put one adapter into all `models`, in place, and tokenise the prompts of `sources`.

    With a `device`, the models are parked, and each is there only while it computes.
    """
    questions = [question for source in sources for question in source.values()]
    if not questions:
        raise ValueError("No training question has an answer; check the split and the beams.")
    digits = digit_tokens(tokenizer)
    tokens = tokenise(tokenizer, (prompt for q in questions for prompt in q.prompts))
    adapter = share_adapter(models.values(), rank=rank, alpha=alpha, device=device)
    examples = [tokens[prompt] for question in questions[:2] for prompt in question.prompts]
    for model in models.values():
        with present(model, device):
            check_digit_logits(model, examples, digits)
    check_equal("linear layers", [(name, p.shape) for name, p in adapter.items()])
    return Trainee(models, adapter, tokens, digits, head, device)


def fitting_micro_batch(trainee: Trainee) -> int:
    """Return how many candidates fit into a forward pass, by the GPU's size."""
    model = next(iter(trainee.models.values()))
    places = {trainee.device} if trainee.device else {p.device for p in model.parameters()}
    if any(place.type == "cpu" for place in places):
        return TRAINED_ON_CPU
    shape, sample = shape_of(model.config), list(trainee.tokens.values())[:TRAINED_ON_CPU]
    return candidates_at_once(
        shape,
        pack_prompts(sample, shape.hidden).token_ids.size
        / len(sample),  # what trees leave of one
        sum(torch.cuda.get_device_properties(place).total_memory for place in places),
        copies=1 if trainee.device else len(trainee.models),
        lora_rank=next(p.shape[0] for n, p in trainee.adapter.items() if n.endswith("lora_A")),
    )


def question_losses(
    model: PreTrainedModel,
    questions: Sequence[TrainingQuestion],
    tokens: Mapping[str, list[int]],
    digits: Sequence[int],
    head: Head = "float32",
) -> Tensor:
    """Return the summed loss of `questions`: weighted binary cross-entropies."""
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

    It is NaN for the first checkpoint with a loss or gradient that is not finite. Losses are
    divided by `divisor`, the number of checkpoints times questions per step. `micro_batch`, the
    largest number of candidates in a forward pass, changes memory, not results.
    """
    sums = []  # loss of each checkpoint, and norm of the gradient so far
    device = trainee.adapter.whole[0].device
    for checkpoint, model in trainee.models.items():
        total = torch.zeros((), device=device)
        with present(model, trainee.device):
            for part in _micro_batches(batch[checkpoint], trainee.tokens, micro_batch):
                loss = question_losses(model, part, *trainee[2:5]) / divisor
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
    """Set the adapter's gradient for one step on all ranks, see `accumulate_gradients`.

    Returned are the losses of all checkpoints, and the micro-batch that fits into memory. If
    one rank runs out of memory, all repeat the step with half the micro-batch. They share this
    information in the same collective operation as the gradients.
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
        if out_of_memory:  # the tensors of the failed frames are free only here
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


def train_adapter(
    trainee: Trainee,
    data: Mapping[str, Questions],
    question_ids: Sequence[str],
    optimisation: Optimisation,
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

    `trainee` is from `prepare`, `data` from `persistcal.training.data.recipe_data`, and
    `question_ids` are all training questions in canonical order, with or without answers.
    Several ranks divide the checkpoints, and all have the same adapter at the end; only the
    first one stores the state in `work` and returns a history, of the table TRAINING: step,
    loss (mean over the step's questions), lr and seconds since the start.

    A loss or gradient that is not finite is a `FloatingPointError`.
    """
    answered = {question_id for questions in data.values() for question_id in questions}
    sizes = {"epochs": optimisation.epochs, "batch_size": optimisation.batch_size}
    batches = question_batches(question_ids, answered, seed=seed, **sizes)
    if not batches:
        raise ValueError("No training question has an answer; check the split and the beams.")
    initialise(trainee.adapter, seed)
    optimizer = AdamW(
        trainee.adapter.whole,
        lr=optimisation.lr,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.01,
    )
    saved = work.read_snapshot(f"seed{seed}") if work else None
    is_auto = optimisation.micro_batch == "auto"
    largest = fitting_micro_batch(trainee) if is_auto else int(optimisation.micro_batch)
    done, rows, micro_batch = _restore(trainee.adapter, optimizer, saved, largest)
    start = time.perf_counter() - (rows[-1][-1] if rows else 0.0)
    steps = range(done, len(batches))
    for step in Pace(steps, f"seed {seed}", unit=" steps", disable=index() > 0):
        ids = batches[step]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(batches), optimisation.lr)
        with sdpa_kernel(ATTENTION):
            losses, micro_batch = joint_gradient(
                trainee,
                {name: [seen[i] for i in ids if i in seen] for name, seen in data.items()},
                divisor=len(data) * optimisation.batch_size,
                micro_batch=micro_batch,
            )
        if bad := [name for name, loss in losses.items() if not math.isfinite(loss)]:
            raise FloatingPointError(
                f"Step {step}: the loss or its gradient at checkpoint {bad[0]!r} is not finite "
                f"(questions {', '.join(ids)}); lower the learning rate or use another dtype."
            )
        clip_grad_norm_(trainee.adapter.whole, MAX_GRADIENT_NORM)
        optimizer.step()
        loss = sum(losses.values()) * optimisation.batch_size / len(ids)
        rows.append((step, loss, optimizer.param_groups[0]["lr"], time.perf_counter() - start))
        if work and (work.is_due or step == steps[-1]):
            record = {"rows": rows, "micro_batch": micro_batch}
            state = Snapshot(_tensors(trainee.adapter, optimizer), record)
            work.write_snapshot(f"seed{seed}", state)
            log.info("Seed %d: %d of %d steps, loss %.3f", seed, step + 1, len(batches), loss)
    return pd.DataFrame(rows, columns=["step", "loss", "lr", "seconds"])


def _tensors(adapter: Adapter, optimizer: AdamW) -> dict[str, Tensor]:
    """Return the parameters and their moments, by name."""
    tensors = {name: parameter.detach() for name, parameter in adapter.items()}
    for moment in MOMENTS:
        parts = adapter.parts(optimizer.state[whole][moment] for whole in adapter.whole)
        tensors |= {f"{name}.{moment}": part for name, part in parts.items()}
    return tensors


def _restore(
    adapter: Adapter, optimizer: AdamW, snapshot: Snapshot | None, micro_batch: int
) -> tuple[int, list[Any], int]:
    """Put all ranks into the state of the snapshot that rank 0 has, if it has one.

    Returned are the steps that are done, their history (empty on other ranks than 0) and the
    micro-batch of the snapshot; without one, as given.
    """
    rows: list[Any] = []
    if snapshot:
        rows, micro_batch = snapshot.record["rows"], snapshot.record["micro_batch"]
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


def missing_seeds(seeds: Seeds) -> list[int]:
    """Return the seeds that all ranks train."""
    flags = torch.tensor([float(seed not in seeds.trained) for seed in seeds.numbers])
    copy_from_first([flags])
    return [seed for seed, flag in zip(seeds.numbers, flags.tolist(), strict=True) if flag]


def adapter_files(
    adapter: Adapter, *, rank: int, alpha: int, base_model: str, made_from: str = ""
) -> dict[str, bytes]:
    """Return the files of `adapter` for `peft.PeftModel.from_pretrained`, by name.

    The same adapter gives the same bytes in every run. The weights carry a digest of
    both files, which `load_adapter` compares, and `made_from`; `base_model` is for information.
    """
    layers = sorted({name.split(".")[-2] for name in adapter})
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        task_type="CAUSAL_LM",
        base_model_name_or_path=base_model,
        inference_mode=True,
    ).to_dict()
    config |= {"peft_type": "LORA", "target_modules": layers}
    tensors = {
        f"base_model.model.{name}.weight": parameter.detach().cpu().contiguous()
        for name, parameter in sorted(adapter.items())
    }
    text = json.dumps(config, indent=2, sort_keys=True)
    metadata = {"format": "pt", **({MADE_FROM: made_from} if made_from else {})}
    return {ADAPTER_CONFIG: text.encode(), ADAPTER: seal(tensors, metadata, text)}

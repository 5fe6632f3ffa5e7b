"""Pre-train a small Olmo-3 model in segments, one saved checkpoint after another."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import torch
from transformers import Olmo3Config, Olmo3ForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.corpus import Corpus
from persistcal.models.load import pick_device
from persistcal.store.pace import Pace


class Schedule(NamedTuple):
    """Learning rate over the steps: warm-up, plateau, linear decay.

    Attributes
    ----------
    lr : float
        Of the plateau.
    warmup : float
        Share of the steps over which the rate rises from 0.
    decay : float
        Share of the steps, at the end, over which it falls.
    final : float
        Share of `lr` that is left at the end.

    Examples
    --------
    >>> schedule = Schedule(lr=1.0, warmup=0.1, decay=0.5, final=0.2)
    >>> [round(schedule.at(step, n_steps=100), 2) for step in (0, 9, 50, 75, 100)]
    [0.1, 1.0, 1.0, 0.6, 0.2]
    """

    lr: float
    warmup: float
    decay: float
    final: float

    def at(self, step: int, *, n_steps: int) -> float:
        """Return the rate of a step, the first one being 0."""
        rise = min(1.0, (step + 1) / max(1.0, self.warmup * n_steps))
        left = (n_steps - step) / (self.decay * n_steps) if self.decay > 0 else 1.0
        return self.lr * rise * (self.final + (1 - self.final) * min(1.0, left))


def new_model(
    tokenizer: PreTrainedTokenizerBase,
    *,
    hidden_size: int,
    intermediate_size: int,
    n_layers: int,
    n_heads: int,
    sliding_window: int,
    max_length: int,
    seed: int,
) -> Olmo3ForCausalLM:
    """Return an untrained Olmo-3 model on `pick_device()`, the same for the same seed.

    Every fourth layer attends to everything before it, the others to the last
    `sliding_window` tokens, as in the large models.
    """
    config = Olmo3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        num_key_value_heads=n_heads,
        max_position_embeddings=max_length,
        sliding_window=sliding_window,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: torch.nn.Module = Olmo3ForCausalLM(config)
    return cast(Olmo3ForCausalLM, model.to(pick_device()))


# What each optimizer keeps of a parameter, by its name in torch.
MOMENTS = {"mean": "exp_avg", "square": "exp_avg_sq", "momentum": "momentum_buffer"}


def open_optimizers(
    model: PreTrainedModel, name: str, *, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a training, whose learning rate is set step by step.

    Parameters
    ----------
    name : {"adamw", "muon"}
        Muon [1]_ is for the matrices of the blocks, at AdamW's scale [2]_; embeddings, the
        head and norms are AdamW's in any case.

    References
    ----------
    .. [1] Jordan, "Muon: An optimizer for hidden layers in neural networks".
       https://kellerjordan.github.io/posts/muon/
    .. [2] Liu et al., "Muon is Scalable for LLM Training". https://arxiv.org/abs/2502.16982
    """
    hidden = [
        parameter
        for key, parameter in model.named_parameters()
        if name == "muon" and parameter.ndim == 2 and ".layers." in key
    ]
    chosen = {id(parameter) for parameter in hidden}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    adamw = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=weight_decay)
    if not hidden:
        return [adamw]
    muon = torch.optim.Muon(
        hidden, momentum=0.95, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    return [adamw, muon]


def read_moments(
    optimizers: Sequence[torch.optim.Optimizer], model: PreTrainedModel
) -> dict[str, torch.Tensor]:
    """Return the running means of each parameter, as `<kind>.<parameter>`."""
    kinds = {theirs: ours for ours, theirs in MOMENTS.items()}
    state = {p: kept for optimizer in optimizers for p, kept in optimizer.state.items()}
    return {
        f"{kinds[key]}.{name}": value.cpu()
        for name, parameter in model.named_parameters()
        for key, value in state[parameter].items()
        if key in kinds
    }


def restore_moments(
    optimizers: Sequence[torch.optim.Optimizer],
    model: PreTrainedModel,
    moments: Mapping[str, torch.Tensor],
    *,
    step: int,
) -> None:
    """Put what `read_moments` has returned after so many steps into new optimizers."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    for optimizer in optimizers:
        adamw = isinstance(optimizer, torch.optim.AdamW)
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            name, kept = names[parameter], optimizer.state[parameter]
            for kind in ("mean", "square") if adamw else ("momentum",):
                value = moments[f"{kind}.{name}"]
                kept[MOMENTS[kind]] = value.to(parameter.device, copy=True)
            if adamw:
                kept["step"] = torch.tensor(float(step))


def pretrain_segment(
    model: PreTrainedModel,
    moments: dict[str, torch.Tensor] | None,
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    *,
    start_step: int,
    end_step: int,
    n_steps: int,
    schedule: Schedule,
    batch_size: int,
    block_length: int,
    weight_decay: float,
    optimizer: str,
) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Train `model` in place from `start_step` to `end_step`.

    Two segments give bit for bit the weights of one that spans both.

    Parameters
    ----------
    model : Olmo3ForCausalLM
        With the weights after `start_step`.
    moments : dict of str to Tensor, or None
        What the segment before returned; None at step 0.
    n_steps : int
        Length of the whole training, which schedule and drift refer to.
    batch_size, block_length : int
        Blocks of a step, and tokens of a block.
    optimizer, weight_decay : str, float
        See `open_optimizers`.

    Returns
    -------
    moments : dict of str to Tensor
        Running means: AdamW's `mean.<parameter>` and `square.<parameter>`, and Muon's
        `momentum.<parameter>`.
    losses : list of float
        Cross-entropy of each step, in nats per token.
    """
    optimizers = open_optimizers(model, optimizer, weight_decay=weight_decay)
    if moments is not None:
        restore_moments(optimizers, model, moments, step=start_step)
    device = next(model.parameters()).device
    losses = []
    model.train()
    steps = range(start_step, end_step)
    for step in Pace(steps, "pre-training", unit=" steps"):
        blocks = corpus.blocks(
            tokenizer, n_blocks=batch_size, length=block_length, step=step, n_steps=n_steps
        )
        tokens = torch.from_numpy(blocks).to(device)
        for group in (group for one in optimizers for group in one.param_groups):
            group["lr"] = schedule.at(step, n_steps=n_steps)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for one in optimizers:
            one.step()
            one.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return read_moments(optimizers, model), losses

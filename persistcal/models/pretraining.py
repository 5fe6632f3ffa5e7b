"""Pre-train a small Olmo-3 model in segments, one saved checkpoint after another."""

from typing import NamedTuple

import torch
from transformers import Olmo3Config, Olmo3ForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.corpus import Corpus
from persistcal.pace import Pace


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
    """Return an untrained Olmo-3 model, the same for the same seed.

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
        return Olmo3ForCausalLM(config)


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

    Returns
    -------
    moments : dict of str to Tensor
        AdamW's running means `mean.<parameter>` and `square.<parameter>`.
    losses : list of float
        Cross-entropy of each step, in nats per token.
    """
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=schedule.lr, betas=(0.9, 0.95), weight_decay=weight_decay
    )
    if moments is not None:
        for name, parameter in model.named_parameters():
            optimizer.state[parameter] = {
                "step": torch.tensor(float(start_step)),
                "exp_avg": moments[f"mean.{name}"].to(device, copy=True),
                "exp_avg_sq": moments[f"square.{name}"].to(device, copy=True),
            }
    losses = []
    model.train()
    steps = range(start_step, end_step)
    for step in Pace(steps, "pre-training", unit=" steps"):
        blocks = corpus.blocks(
            tokenizer, n_blocks=batch_size, length=block_length, step=step, n_steps=n_steps
        )
        tokens = torch.from_numpy(blocks).to(device)
        for group in optimizer.param_groups:
            group["lr"] = schedule.at(step, n_steps=n_steps)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    state = {}
    for name, parameter in model.named_parameters():
        state[f"mean.{name}"] = optimizer.state[parameter]["exp_avg"].cpu()
        state[f"square.{name}"] = optimizer.state[parameter]["exp_avg_sq"].cpu()
    return state, losses

"""Pre-train a small Olmo-3 model in segments, one saved checkpoint after another."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import pandas as pd
import torch
from transformers import Olmo3Config, Olmo3ForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from atlas.corpus import Corpus, FactSets, Phase, train_tokenizer
from persistcal.models.checkpoint import Checkpoint, local_checkpoint, save_checkpoint
from persistcal.models.load import load_model, load_tokenizer, pick_device
from persistcal.store.files import FilePath, write_whole
from persistcal.store.progress import Pace, read_sealed, seal

OPTIMIZER = "optimizer.safetensors"

# The state of each optimizer per parameter, by its name in torch.
MOMENTS = {"mean": "exp_avg", "square": "exp_avg_sq", "momentum": "momentum_buffer"}


def open_optimizers(
    model: PreTrainedModel, name: str, *, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a training, AdamW and with the `name` "muon" that, too.

    Muon [1]_ is for the matrices of the blocks, at AdamW's scale [2]_; embeddings, the head
    and norms are AdamW's in any case. The learning rate is set step by step.

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
    ids = {id(parameter) for parameter in hidden}
    rest = [p for p in model.parameters() if id(p) not in ids]
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
    kinds = {state_key: key for key, state_key in MOMENTS.items()}
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
    """Put the moments of `read_moments`, after so many steps, into new optimizers."""
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


class Schedule(NamedTuple):
    """Learning rate over the steps: warm-up, plateau, linear decay.

    It rises from 0 to `lr` over the share `warmup` of the steps, and falls to the share `final`
    of it over the share `decay` at the end.

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

    As in the large models, every fourth layer attends to all tokens before, the others to
    the last `sliding_window`.
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


@dataclass(frozen=True)
class Pretraining:
    """Settings of a pre-training: the keys of `pretraining` in the config.

    `steps` is the length of the whole training, which schedule and drift refer to; facts of
    the categories `without` are in no document.
    """

    steps: int
    seed: int
    vocab_size: int
    batch_size: int
    block_length: int
    optimizer: str
    weight_decay: float
    confidence_share: float
    architecture: Mapping[str, int]
    schedule: Mapping[str, float]
    drift: Sequence[Mapping[str, Any]]
    ratings: tuple[str, str] | None = None
    fact_sets: Mapping[str, Any] | None = None
    datasets: Sequence[str] = ()
    prompt: str = ""
    without: Sequence[str] = ()

    def corpus(self, facts: pd.DataFrame, confidence_prompt: str) -> Corpus:
        """Return the documents; documents in the prompt's format contain no evaluated question.

        A model with `ratings` is a verifier. It learns to separate right from wrong answers on
        facts in its corpus, and is evaluated on test questions, like the estimators.
        """
        return Corpus(
            facts.reset_index(drop=True),
            [Phase(**phase) for phase in self.drift],
            confidence_template=confidence_prompt,
            confidence_share=self.confidence_share,
            seed=self.seed,
            ratings=self.ratings or ("9", "0"),
            unrated=["test"] if self.ratings else ["train", "test"],
            fact_sets=FactSets(**(self.fact_sets or {}), without=self.without),
        )


class Pretrained(NamedTuple):
    """A checkpoint between two segments: model, tokenizer and the optimizer's running means."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    moments: Mapping[str, torch.Tensor] | None = None

    @classmethod
    def read(cls, weights: FilePath) -> Self:
        """Read the checkpoint at `weights`, with the state after its segment."""
        folder = str(Path(weights).parent)
        model = load_model(folder, dtype="float32").requires_grad_(True)
        made = _content(local_checkpoint(folder))
        moments, _ = read_sealed(Path(folder, OPTIMIZER), made)
        return cls(model, load_tokenizer(folder), moments)

    def save(self, folder: FilePath) -> Checkpoint:
        """Write all files of the checkpoint and return its record."""
        made = save_checkpoint(self.model, self.tokenizer, folder, dtype="float32")
        write_whole(Path(folder, OPTIMIZER), seal(self.moments or {}, {}, _content(made)))
        return made


def _content(checkpoint: Checkpoint) -> str:
    """Return the digests of a checkpoint's files, for the digest of the optimizer."""
    return json.dumps(checkpoint.files | checkpoint.weights, sort_keys=True)


def untrained(settings: Pretraining, corpus: Corpus) -> Pretrained:
    """Return a tokenizer that is trained on the corpus, and a model with initial weights."""
    tokenizer = train_tokenizer(corpus.sample(20_000), vocab_size=settings.vocab_size)
    model = new_model(tokenizer, **settings.architecture, seed=settings.seed)
    return Pretrained(model, tokenizer)


def pretrain_segment(
    initial: Pretrained,
    corpus: Corpus,
    settings: Pretraining,
    *,
    start_step: int,
    end_step: int,
) -> tuple[Pretrained, list[float]]:
    """Train the model of `initial` in place; return it with the loss of each step, per token.

    Losses are in nats. Two segments give bit for bit the weights of one that spans both.
    """
    model, tokenizer, moments = initial
    optimizers = open_optimizers(model, settings.optimizer, weight_decay=settings.weight_decay)
    if moments is not None:
        restore_moments(optimizers, model, moments, step=start_step)
    schedule = Schedule(**settings.schedule)
    sizes = {"n_blocks": settings.batch_size, "length": settings.block_length}
    device = next(model.parameters()).device
    losses = []
    model.train()
    for step in Pace(range(start_step, end_step), "pre-training", unit=" steps"):
        blocks = corpus.blocks(tokenizer, **sizes, step=step, n_steps=settings.steps)
        tokens = torch.from_numpy(blocks).to(device)
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = schedule.at(step, n_steps=settings.steps)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return Pretrained(model, tokenizer, read_moments(optimizers, model)), losses

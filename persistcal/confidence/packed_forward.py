"""Run a model on prompts that are packed into trees."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from persistcal.confidence.packing import pack_prompts
from persistcal.models.batches import Work, in_batches
from persistcal.store.pace import Pace


class Packed(NamedTuple):
    """Prompts ready for a forward pass."""

    inputs: dict[str, Any]  # keyword arguments of the model or its decoder
    ends: np.ndarray  # int64, shape (2, n_prompts): row and column of each prompt's last token
    ends_there: Tensor  # the same on the model's device

    def last_tokens(self, hidden: Tensor) -> Tensor:
        """Return what `hidden` has, on any device, at the last token of each prompt."""
        reachable = hidden.device.type == self.ends_there.device.type
        row, column = self.ends_there.to(hidden.device) if reachable else self.ends
        return hidden[row, column]


def visible_tokens(until: Tensor) -> Tensor:
    """Return whether a token of each row (second axis) sees another one (last axis)."""
    place = torch.arange(until.shape[1], device=until.device)[:, None]
    return (place.T <= place) & (place < until[:, None])


def _attention_mask(config: Any, until: Tensor, positions: Tensor, dtype: torch.dtype) -> Any:  # noqa: ANN401
    def additive(visible: Tensor) -> Tensor:
        blocked = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=until.device)
        return torch.where(visible[:, None], torch.zeros_like(blocked), blocked)

    visible = visible_tokens(until)
    mask = additive(visible)
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return mask
    distance = positions[:, :, None] - positions[:, None, :]
    near = additive(visible & (distance < config.sliding_window))
    return {"full_attention": mask, "sliding_attention": near}


def pack(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Packed:
    """Return the token ids `prompts`, packed, on the device of `model`.

    The mask is a dense one for scaled dot product attention, on a GPU too: rows are so
    short that attention is a small part of the work, see `pack_prompts`.
    """
    batch = pack_prompts(prompts, model.config.hidden_size)
    rows = np.stack([batch.token_ids, batch.positions, batch.until])
    ends = np.stack([batch.row, batch.column])
    # At once, because each copy to a GPU waits for it.
    sent = torch.from_numpy(np.concatenate([rows.ravel(), ends.ravel()])).to(model.device)
    token_ids, positions, until = sent[: rows.size].view(rows.shape)
    mask = None  # plain causal attention, for which there are faster kernels
    if batch.branches:
        mask = _attention_mask(model.config, until, positions, model.dtype)
    inputs = {
        "input_ids": token_ids,
        "attention_mask": mask,
        "position_ids": positions,
        "use_cache": False,
    }
    return Packed(inputs, ends, sent[rows.size :].view(ends.shape))


def over_prompts(
    compute: Callable[[list[Sequence[int]]], Tensor],
    prompts: Sequence[Sequence[int]],
    *,
    batch_size: int,
    desc: str,
    work: Work = Work(),  # noqa: B008 - immutable
) -> np.ndarray:
    """Return the number that `compute` gives for each prompt, given those of a batch.

    Prompts that begin alike go into one batch, whose halves are computed one after the other
    where it does not fit into memory. NaN stands for a prompt whose batch is not in `work`; one
    that is computed is a `FloatingPointError`.
    """
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    with Pace(total=len(order), desc=desc, unit=" answers") as bar:
        computed = in_batches(
            lambda batch: compute([prompts[i] for i in batch]).double().tolist(),
            order,
            batch_size=batch_size,
            work=work,
            progress=bar.update,
        )
    numbers = np.full(len(prompts), np.nan)
    numbers[list(computed)] = list(computed.values())
    if np.isnan(numbers[list(computed)]).any():
        raise FloatingPointError(
            "The model's logits are not finite, so it states no confidence; check the adapter "
            "or use another dtype."
        )
    return numbers


@torch.inference_mode()
def check_logits(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    ours: Tensor,
    tokens: Sequence[int] | slice = slice(None),
) -> None:
    """Refuse logits of packed prompts that are not those of a forward pass of each alone.

    An architecture that scales or caps its logits, or treats attention masks in its own
    way, would otherwise train and score something else. `ours` are of some `tokens`.
    """
    alone = [
        model(torch.tensor([prompt], device=model.device), use_cache=False).logits[0, -1]
        for prompt in prompts
    ]
    theirs = torch.stack(alone)[:, tokens].float().to(ours.device)
    difference = (ours.float() - theirs).abs().max().item()
    largest = theirs.abs().max().item()
    rounding = max(8 * torch.finfo(model.dtype).eps, 1e-4)
    if not difference <= rounding * (1 + largest):
        raise ValueError(
            f"{type(model).__name__} computes its logits in a way that is not supported: they "
            f"differ by {difference:.2g} from those of a full forward pass of each prompt; use "
            "a model without logit scaling or capping, which takes attention masks as given."
        )

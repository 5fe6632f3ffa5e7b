"""Run a model on prompts that are packed into trees."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from persistcal.confidence.packing import Batch, pack_prompts


class Packed(NamedTuple):
    """Prompts ready for a forward pass.

    Attributes
    ----------
    inputs : dict
        Keyword arguments of the model or its decoder.
    row, column : ndarray of int64, shape (n_prompts,)
        Where in the batch the last token of each prompt is.
    """

    inputs: dict[str, Any]
    row: np.ndarray
    column: np.ndarray


def _attention_mask(config: Any, batch: Batch, dtype: torch.dtype, device: torch.device) -> Any:  # noqa: ANN401
    def additive(visible: Tensor) -> Tensor:
        blocked = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=device)
        return torch.where(visible[:, None], torch.zeros_like(blocked), blocked)

    visible = torch.from_numpy(batch.visible).to(device)
    mask = additive(visible)
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return mask
    positions = torch.from_numpy(batch.positions).to(device)
    distance = positions[:, :, None] - positions[:, None, :]
    near = additive(visible & (distance < config.sliding_window))
    return {"full_attention": mask, "sliding_attention": near}


def pack(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Packed:
    """Return the token ids `prompts`, packed, on the device of `model`.

    The mask is a dense one for scaled dot product attention, on a GPU too: rows are so
    short that attention is a small part of the work, see `pack_prompts`.
    """
    batch = pack_prompts(prompts, model.config.hidden_size)
    token_ids, positions = (
        torch.from_numpy(array).to(model.device) for array in (batch.token_ids, batch.positions)
    )
    mask = None  # plain causal attention, for which there are faster kernels
    if batch.branches:
        mask = _attention_mask(model.config, batch, model.dtype, model.device)
    inputs = {
        "input_ids": token_ids,
        "attention_mask": mask,
        "position_ids": positions,
        "use_cache": False,
    }
    return Packed(inputs, batch.row, batch.column)


def check_close(model: PreTrainedModel | PeftModel, ours: Tensor, theirs: Tensor) -> None:
    """Refuse logits of packed prompts that are not those of a full forward pass.

    Raises
    ------
    ValueError
        When the two differ by more than rounding.
    """
    difference = (ours - theirs).abs().max().item()
    largest = theirs.abs().max().item()
    rounding = max(8 * torch.finfo(model.dtype).eps, 1e-4)
    if not difference <= rounding * (1 + largest):
        raise ValueError(
            f"{type(model).__name__} computes its logits in a way that is not supported: they "
            f"differ by {difference:.2g} from those of a full forward pass of each prompt; use "
            "a model without logit scaling or capping, which takes attention masks as given."
        )

"""Hidden states at the end of a prompt, and their variance over adapters."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.models.packing import BatchSize, pack, size_of_batch
from persistcal.store.progress import Pace


def blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Return the transformer blocks of `model` in order, where it lists them as most do."""
    layers = getattr(model.get_decoder(), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ValueError(
            f"{type(model).__name__} has no list of blocks called 'layers', so its hidden "
            "states cannot be read; use a model whose decoder has one."
        )
    return layers


@torch.inference_mode()
def last_hidden_states(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, last_layer: str = "after_norm"
) -> Tensor:
    """Return the output of each block at the last token of each prompt of a batch, as float32.

    The shape is (n_layers, n_prompts, n_units). `last_layer` is "after_norm" for the last
    block's output after the model's final norm, as in the paper and as transformers returns it
    for `output_hidden_states`, or "before_norm", as for other blocks.
    """
    packed = pack(model, prompts)
    outputs: list[Tensor] = []

    def keep(_block: nn.Module, _inputs: tuple, output: Tensor | tuple) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        outputs.append(packed.last_tokens(hidden).float().to(model.device))

    hooks = [block.register_forward_hook(keep) for block in blocks(model)]
    try:
        output = model.get_decoder()(**packed.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if last_layer == "after_norm":
        normed = packed.last_tokens(output.last_hidden_state)
        outputs[-1] = normed.float().to(model.device)
    return torch.stack(outputs)


def variances_over_adapters(
    model: PeftModel,
    prompts: Sequence[Sequence[int]],
    *,
    batch_size: BatchSize,
    last_layer: str = "after_norm",
) -> np.ndarray:
    """Return the population variance of hidden states over the adapters of a model.

    It is summed over hidden units: (n_prompts, n_layers). Adapters are switched within a batch
    and their samples added one by one (Welford's method), so that the hidden states of one
    batch and adapter are all that is held. The prompts are token ids; for `last_layer` see
    `last_hidden_states`.
    """
    names = list(model.peft_config)
    if len(names) < 2:
        raise ValueError("A variance over adapters needs at least two; give more seeds.")
    base = cast(PreTrainedModel, model.get_base_model())
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    variances = np.empty((len(prompts), len(blocks(base))))
    size = size_of_batch(batch_size, base, prompts)
    for start in Pace(range(0, len(order), size), "hidden states", unit=" batches"):
        chosen = order[start : start + size]
        batch = [prompts[i] for i in chosen]
        mean = squares = np.zeros(())
        for n, name in enumerate(names, start=1):
            model.set_adapter(name)
            states = last_hidden_states(base, batch, last_layer=last_layer)
            sample = states.cpu().numpy().astype(np.float64)
            deviation = sample - mean
            mean = mean + deviation / n
            squares = squares + (deviation * (sample - mean)).sum(-1)
        variances[chosen] = (squares / len(names)).T
    return variances

"""Hidden states at the end of a prompt."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.models.packing import pack


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

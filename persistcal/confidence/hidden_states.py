"""Hidden states at the end of a prompt."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.models.packing import Packed, pack


def blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Return the transformer blocks of `model` in order, where it lists them as most do."""
    layers = getattr(model.get_decoder(), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ValueError(
            f"{type(model).__name__} has no list of blocks called 'layers', so its hidden "
            "states cannot be read; use a model whose decoder has one."
        )
    return layers


@contextmanager
def _last_outputs(model: PreTrainedModel, packed: Packed) -> Iterator[list[Tensor]]:
    """Collect the output of each block at the last tokens only, on the model's device."""
    outputs: list[Tensor] = []

    def keep(_block: nn.Module, _inputs: tuple, output: Tensor | tuple) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        outputs.append(packed.last_tokens(hidden).float().to(model.device))

    hooks = [block.register_forward_hook(keep) for block in blocks(model)]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def last_hidden_states(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, last_layer: str = "after_norm"
) -> Tensor:
    """Return the output of each block at the last token of each prompt.

    Parameters
    ----------
    prompts : sequence of sequence of int
        Token ids of one batch.
    last_layer : {"after_norm", "before_norm"}, default="after_norm"
        Take the last block's output after the model's final norm, as the paper does and as
        transformers returns it for `output_hidden_states`, or before, as of other blocks.

    Returns
    -------
    Tensor of float32, shape (n_layers, n_prompts, n_units)
    """
    packed = pack(model, prompts)
    with _last_outputs(model, packed) as outputs:
        output = model.get_decoder()(**packed.inputs)
    if last_layer == "after_norm":
        normed = packed.last_tokens(output.last_hidden_state)
        outputs[-1] = normed.float().to(model.device)
    return torch.stack(outputs)

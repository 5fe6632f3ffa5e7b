"""Compute in float32 with weights that stay as they are stored."""

from types import MethodType

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel


def _linear_in_float32(layer: nn.Linear, x: Tensor) -> Tensor:
    return linear(x, layer.weight.to(x.dtype), layer.bias)


def compute_in_float32(model: PreTrainedModel) -> PreTrainedModel:
    """Return `model`, whose activations are float32 from now on.

    The matrices of all linear layers but the last keep their dtype and are converted
    whenever they are multiplied: a model in bfloat16 takes little more memory, and
    computes what it would if all of it were converted. On GPUs products round what they
    read to TF32, which holds bfloat16 exactly.

    Parameters
    ----------
    model : PreTrainedModel
        Changed in place, before adapters are put into it.
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    stored = {id(layer.weight) for layer in linears}
    stored -= {id(model.get_output_embeddings().weight)}
    for parameter in model.parameters():
        if id(parameter) not in stored:
            parameter.data = parameter.data.float()
    for layer in linears:
        layer.forward = MethodType(_linear_in_float32, layer)  # type: ignore[method-assign]
    return model

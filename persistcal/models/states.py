"""Weights that a state changes in memory: an adapter merged in, an average, rounded weights."""

import warnings
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from peft import PeftModel
from safetensors import safe_open
from torch import nn
from transformers import PreTrainedModel

from persistcal.models import checks
from persistcal.models.checkpoint import ADAPTER, ADAPTER_CONFIG
from persistcal.store.files import DamagedFileError, FilePath, inside, read_text
from persistcal.store.progress import read_sealed

BITS = {"int8": 8, "int4": 4}
GROUP = 32  # inputs that share a scale in int4


def merge_adapter(model: PreTrainedModel, folder: FilePath) -> PreTrainedModel:
    """Return `model` with the LoRA adapter in `folder` added to its weights."""
    adapted = load_adapter(model, folder)
    return cast(PreTrainedModel, adapted.merge_and_unload(safe_merge=True)).eval()


def check_adapter_fits(folder: FilePath, empty: nn.Module) -> None:
    """Refuse an adapter if its matrices do not fit the layers of an empty model."""
    path = inside(folder, ADAPTER)
    config = checks.check_adapter_config(folder)
    layers = dict(empty.named_modules())
    with safe_open(path, framework="pt") as file:
        for key in file.keys():
            name, _, part = key.removeprefix("base_model.model.").partition(".lora_")
            if part not in ("A.weight", "B.weight"):
                continue
            side = int(part.startswith("A"))  # of the layer's weight: outputs, inputs
            weight = getattr(layers.get(name), "weight", None)
            expected = None if weight is None else weight.shape[side]
            if expected != (size := file.get_slice(key).get_shape()[side]):
                dimension = "inputs" if side else "outputs"
                has = f"has {expected}" if expected else "has no such layer"
                raise DamagedFileError(
                    f"{path} is for another base ({config.get('base_model_name_or_path')}): it "
                    f"changes {size} {dimension} of {name}, where this model {has}; give the "
                    "repo and revision that it was trained on."
                )


@torch.no_grad()
def average_weights(
    model: PreTrainedModel, share: float, others: Sequence[tuple[float, PreTrainedModel]]
) -> PreTrainedModel:
    r"""Return `model` with the weights :math:`\sum_i s_i w_i` of itself and `others`.

    The sum is computed in float32, tensor by tensor. `share` belongs to `model`.
    """
    parameters_of = [(weight, dict(added.named_parameters())) for weight, added in others]
    for name, parameter in model.named_parameters():
        total = share * parameter.float()
        for weight, parameters in parameters_of:
            total += weight * parameters[name].to(total.device).float()
        parameter.copy_(total)
    return model


def check_same_shapes(empty: Mapping[str, nn.Module], key: str) -> None:
    """Refuse to merge models with different shapes; `empty` maps names to empty models."""
    first, *others = empty
    shapes = {
        model: {name: tuple(p.shape) for name, p in empty[model].named_parameters()}
        for model in empty
    }
    for more in others:
        for name in shapes[first] | shapes[more]:
            shape, expected = (shapes[model].get(name, "missing") for model in (first, more))
            if shape != expected:
                raise DamagedFileError(
                    f"config: {key} cannot be averaged: {name} is {shape} in {first} and "
                    f"{expected} in {more}; merge checkpoints of one architecture "
                    "and vocabulary."
                )


def linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    """Return the linear layers of a model but its head, by name."""
    head = cast(PreTrainedModel, model).get_output_embeddings()
    layers = model.named_modules()
    return {
        n: layer for n, layer in layers if isinstance(layer, nn.Linear) and layer is not head
    }


def check_rounding(empty: nn.Module, kind: str, where: str) -> None:
    """Refuse to round the weights of a model, without weights, that has no whole groups."""
    for name, layer in linear_layers(empty).items():
        if kind == "int4" and layer.weight.shape[1] % GROUP:
            raise DamagedFileError(
                f"{where}: quantization int4 takes groups of {GROUP} inputs, but {name} has "
                f"{layer.weight.shape[1]}; set it to int8."
            )


@torch.no_grad()
def round_weights(model: PreTrainedModel, kind: str) -> PreTrainedModel:
    r"""Return `model` with the weights of its linear layers, but the head, on a coarse grid.

    This is symmetric weight-only quantization; the model computes in its own dtype, on any
    device. A weight becomes :math:`s \cdot \operatorname{round}(w / s)`, at most
    :math:`2^{b-1} - 1` and at least :math:`-2^{b-1}` steps, with the scale
    :math:`s = \max |w| / (2^{b-1} - \tfrac12)` over a layer's output in int8, and over each
    32 of its inputs in int4.

    Notes
    -----
    The grids equal torchao's `Int8WeightOnlyConfig` and `IntxWeightOnlyConfig` with int4 and
    groups of 32. Memory is not saved, because only the numbers matter here.
    """
    most = 2 ** (BITS[kind] - 1)
    for layer in linear_layers(model).values():
        weight = layer.weight
        size = GROUP if kind == "int4" else weight.shape[1]
        groups = weight.float().reshape(-1, size)
        scale = groups.abs().amax(1, keepdim=True) / (most - 0.5)
        scale = torch.where(scale == 0, 1.0, scale)
        steps = (groups / scale).round().clamp(-most, most - 1)
        weight.copy_((steps * scale).reshape(weight.shape))
    return model


def load_adapter(
    model: PreTrainedModel | PeftModel, folder: FilePath, name: str = "default"
) -> PeftModel:
    """Put the adapter in `folder` into `model`, in place, for inference.

    A PeftModel already contains other adapters. Damaged adapters, missing or unexpected
    weights, and non-finite weights are refused.
    """
    checks.check_adapter_config(folder)
    path = inside(folder, ADAPTER)
    tensors = read_sealed(path, read_text(inside(folder, ADAPTER_CONFIG)))
    checks.check_finite(tensors.items(), path)
    with warnings.catch_warnings():
        # peft asks transformers for an attribute under the name that it had before
        warnings.filterwarnings("ignore", ".*gradient_checkpointing", FutureWarning)
        # missing weights are refused below
        warnings.filterwarnings("ignore", "Found missing adapter keys")
        try:
            if not isinstance(model, PeftModel):
                model = PeftModel.from_pretrained(model, folder, adapter_name=name)
            # Repeated for the first adapter, because only this call reports the loaded weights.
            loaded = model.load_adapter(folder, adapter_name=name)
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise DamagedFileError(
                f"{path} does not fit the model ({reason}); use the adapter that was trained "
                "on it."
            ) from error
    checks.check_keys(path, missing=loaded.missing_keys, unexpected=loaded.unexpected_keys)
    return model.eval()

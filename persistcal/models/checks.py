"""Refuse models and adapters that are not whole, as random weights would fill the gaps."""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from persistcal.models.checkpoint import ADAPTER, ADAPTER_CONFIG
from persistcal.store.files import (
    DamagedFileError,
    FilePath,
    exists,
    inside,
    names_in,
    read_text,
)

MAX_LAYERS = 1000  # the deepest language models have some 130

MAX_RANK = 4096

# Initialisations that leave the model as it is, and are overwritten by the adapter's
# weights. Others change the model's own weights, or take hours.
KNOWN_INITIALISATIONS = (True, False, "gaussian")


def read_json(path: FilePath) -> dict[str, Any]:
    """Return the content of a config, which is a JSON object."""
    try:
        content = json.loads(read_text(path))
    except FileNotFoundError as error:
        raise DamagedFileError(
            f"{path} is missing; put it back, or fetch or make the checkpoint again."
        ) from error
    except ValueError as error:
        raise DamagedFileError(
            f"{path} is not readable ({error}); fetch or save the checkpoint again."
        ) from error
    if not isinstance(content, dict):
        raise DamagedFileError(f"{path} is no JSON object; save the checkpoint again.")
    return content


def count_stored(folder: FilePath) -> int:
    """Return the number of weights in the safetensors files in `folder`, by their headers."""
    total = 0
    for name in names_in(folder, "*.safetensors"):
        path = inside(folder, name)
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():
                    total += math.prod(file.get_slice(key).get_shape())
        except SafetensorError as error:
            raise DamagedFileError(
                f"{path} is cut off or damaged ({error}); fetch or save the checkpoint again."
            ) from error
    return total


def check_layers(config: Mapping[str, Any], path: str) -> None:
    """Refuse a config of more layers than any model has, before they are built."""
    for key, value in config.items():
        if isinstance(value, dict):
            check_layers(value, path)
        elif "layer" in key and isinstance(value, int | float) and value > MAX_LAYERS:
            raise DamagedFileError(
                f"{path}: {key} is {value}, and no model of more than {MAX_LAYERS} layers is "
                "built; correct it."
            )


def check_size(empty: nn.Module, folder: str) -> None:
    """Refuse a config that describes a far larger model than the files contain."""
    stored = count_stored(folder)
    described = sum(t.numel() for t in [*empty.parameters(), *empty.buffers()])
    if stored and described > 2 * stored + 10**8:
        raise DamagedFileError(
            f"{inside(folder, 'config.json')} describes a model of {described:,} weights, and "
            f"the files beside it hold {stored:,}; correct the config or complete the files."
        )


def check_keys(
    where: str,
    *,
    missing: Iterable[str] = (),
    unexpected: Iterable[str] = (),
    mismatched: Iterable[str] = (),
) -> None:
    """Refuse missing and unexpected weights, by their names."""
    problems = {
        "lacks weights of the model": missing,
        "holds weights that the model does not have": unexpected,
        "holds weights of another shape than the model's": mismatched,
    }
    named = {problem: list(names) for problem, names in problems.items()}
    wrong = [f"{problem}: {first(names)}" for problem, names in named.items() if names]
    if wrong:
        raise DamagedFileError(
            f"{where} {', and '.join(wrong)}; save or fetch it again, whole and beside the "
            "config that it belongs to."
        )


def first(names: Collection[str]) -> str:
    """Name the first three of many.

    >>> first({"e", "a", "d", "c", "b"})
    'a, b, c and 2 more'
    """
    shown = sorted(names)[:3]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(shown)}{more}"


def check_finite(tensors: Iterable[tuple[str, Tensor]], where: str) -> None:
    """Refuse weights that are not numbers, or infinite."""
    # The extremes of a tensor need no memory, and are NaN if anything is.
    ends = {
        name: torch.stack(tensor.detach().aminmax()).isfinite().all()
        for name, tensor in tensors
        if tensor.is_floating_point() and tensor.numel()
    }
    if bad := [name for name, finite in ends.items() if not finite]:
        raise DamagedFileError(
            f"{where} holds weights that are not finite numbers: {first(bad)}; fetch or save "
            "it again, or use another checkpoint."
        )


def check_adapter_config(folder: FilePath) -> dict[str, Any]:
    """Return the config of a plain LoRA adapter; others are refused before they are built."""
    path, weights = inside(folder, ADAPTER_CONFIG), inside(folder, ADAPTER)
    config = read_json(path)
    if not exists(weights):
        raise DamagedFileError(
            f"{weights} is missing; fetch or make the adapter again as safetensors."
        )
    ranks = [config.get("r", 0), *(config.get("rank_pattern") or {}).values()]
    refused = {
        "peft_type": config.get("peft_type") != "LORA",
        "init_lora_weights": config.get("init_lora_weights", True) not in KNOWN_INITIALISATIONS,
        "r": not all(isinstance(rank, int) and 0 < rank <= MAX_RANK for rank in ranks),
        # They import a module that they name, or rebuild the model.
        **{key: bool(config.get(key)) for key in ("megatron_config", "layer_replication")},
    }
    if bad := [key for key, is_bad in refused.items() if is_bad]:
        raise DamagedFileError(
            f"{path}: {bad[0]} is {config.get(bad[0])!r}, and only plain LoRA adapters are "
            f"loaded (peft_type LORA, ranks up to {MAX_RANK}, initialised by "
            f"{', '.join(map(repr, KNOWN_INITIALISATIONS))}); convert it with peft."
        )
    return config

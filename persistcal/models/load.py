"""Load causal language models and their tokenizers, and choose their device and precision."""

import functools
import gc
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MethodType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from persistcal.models import checks, hub, states
from persistcal.models.checkpoint import ADAPTER_CONFIG, INDEX, WEIGHTS, Checkpoint
from persistcal.store.files import DamagedFileError, exists, inside, is_folder

log = logging.getLogger(__name__)


@functools.cache
def pick_device() -> torch.device:
    """Return the fastest device there is: CUDA, then MPS, then the CPU."""
    if torch.cuda.is_available():
        device = torch.device("cuda")
    elif torch.backends.mps.is_available():
        device = torch.device("mps")
    else:
        device = torch.device("cpu")
    log.info("Models run on %s", device)
    return device


def default_dtype(device: torch.device) -> str:
    """Return the dtype of models on a device: bfloat16 on GPUs that compute in it."""
    if device.type == "cpu":
        return "float32"
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        log.warning(
            "This GPU does not compute in bfloat16; models take float32, twice as large"
        )
        return "float32"
    return "bfloat16"


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Hide transformers' progress bars and its table of missing weights."""
    shown = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shown:
            transformers_logging.enable_progress_bar()


def split_model(model: torch.nn.Module, gpu_bytes: Sequence[int]) -> dict[str, int] | None:
    """Return the GPU of each part of a model; None if it fits on one GPU of `gpu_bytes`.

    A causal language model with weights larger than half a GPU leaves too little room for
    activations, so its layers are divided equally among GPUs. Checkpoints of one architecture
    are divided in the same way, so that they can share an adapter.
    """
    size = sum(parameter.nbytes for parameter in model.parameters())
    if len(gpu_bytes) < 2 or size <= min(gpu_bytes) / 2:
        return None
    decoder = cast(PreTrainedModel, model).get_decoder()
    [inner] = (name for name, module in model.named_modules() if module is decoder)
    head = cast(PreTrainedModel, model).get_output_embeddings()
    tied = head.weight is cast(PreTrainedModel, model).get_input_embeddings().weight
    last, layers = len(gpu_bytes) - 1, list(decoder.layers)
    places = {f"{inner}.{name}": 0 for name, _ in decoder.named_children() if name != "layers"}
    places[f"{inner}.norm"] = last
    places |= {
        f"{inner}.layers.{i}": i * len(gpu_bytes) // len(layers) for i in range(len(layers))
    }
    [head_name] = (name for name, module in model.named_modules() if module is head)
    return places | {head_name: 0 if tied else last}


def _places(
    source: str, empty: torch.nn.Module, device: torch.device
) -> dict[str, int] | dict[str, torch.device]:
    """Return the device map of a model: one device, or all visible GPUs."""
    if device.type == "cuda" and device.index is None and torch.cuda.device_count() > 1:
        gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        if split := split_model(empty, [gpu.total_memory for gpu in gpus]):
            log.info("%s is split over %d GPUs", source, len(gpus))
            return split
    return {"": device}


def build_empty(
    source: str,
    *,
    revision: str | None = None,
    dtype: torch.dtype = torch.float32,
    kind: Any = AutoModelForCausalLM,  # noqa: ANN401
) -> torch.nn.Module:
    """Return the model of a config without weights, on the device "meta".

    A local folder must contain a complete model of a plausible size.
    """
    if is_folder(source):
        if exists(inside(source, ADAPTER_CONFIG)):
            raise DamagedFileError(
                f"{source} holds adapter_config.json, so another model than its config's would "
                "be loaded; merge the adapter into the model, or move it elsewhere."
            )
        path = inside(source, "config.json")
        checks.check_layers(checks.read_json(path), path)
    config = AutoConfig.from_pretrained(
        source, revision=revision or "main", trust_remote_code=False
    )
    with torch.device("meta"):
        empty = kind.from_config(config, dtype=dtype, trust_remote_code=False)
    if is_folder(source):
        checks.check_size(empty, source)
    return empty


def load_whole(kind: Any, source: str, **how: Any) -> torch.nn.Module:  # noqa: ANN401
    """Load a model from safetensors files that contain exactly its weights.

    `kind` is a class of transformers; its `from_pretrained` receives `how`. Missing, unknown
    and non-finite weights and wrong shapes are refused.
    """
    with without_progress_bars():
        model, info = kind.from_pretrained(
            source,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            # refused below, like missing weights
            ignore_mismatched_sizes=True,
            **how,
        )
    files = [inside(source, name) for name in (WEIGHTS, INDEX)]
    location = next((path for path in files if exists(path)), source)
    checks.check_keys(
        location,
        missing=info["missing_keys"],
        unexpected=info["unexpected_keys"],
        mismatched=[name for name, *_ in info["mismatched_keys"]],
    )
    checks.check_finite(model.state_dict().items(), location)
    return model


def open_model(checkpoint: Checkpoint, *, precision: str = "stored") -> PreTrainedModel:
    """Load the model of a checkpoint with its changes, after a check against its record.

    All models of an average except the first are read into main memory. With `precision`
    "float32" the model computes in float32 for every dtype of the weights.
    """
    model = _load_changed(checkpoint)
    return compute_in_float32(model) if precision == "float32" else model


def _load_changed(
    checkpoint: Checkpoint, device: torch.device | str | None = None
) -> PreTrainedModel:
    """Return the model of a checkpoint after the changes of its weights, in order."""
    dtype = checkpoint.dtype
    if checkpoint.merged:
        (share, first), *further = checkpoint.merged
        model = _load_changed(replace(first, dtype=dtype), device)
        parts = ((share_of_part, replace(c, dtype="float32")) for share_of_part, c in further)
        loaded = [(share_of_part, _load_changed(part, "cpu")) for share_of_part, part in parts]
        model = states.average_weights(model, share, loaded)
    else:
        model = load_model(hub.fetch_checked(checkpoint), dtype=dtype, device=device)
    if checkpoint.adapter:
        model = states.merge_adapter(model, hub.fetch_checked(checkpoint.adapter))
    if kind := checkpoint.changes.get("quantization"):
        model = states.round_weights(model, kind)
    return model


def open_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a checkpoint, after a check against its record."""
    return load_tokenizer(hub.fetch_small_checked(checkpoint))


def load_model(
    source: str,
    revision: str | None = None,
    *,
    dtype: str | None = None,
    device: torch.device | str | None = None,
) -> PreTrainedModel:
    """Load a causal language model for inference: in evaluation mode, without gradients.

    `source` is a Hub id or a local folder. Only safetensors files are read, and no code is run.
    The defaults are `default_dtype` and `pick_device()`; a model that is too large for one GPU
    is split over all visible GPUs.
    """
    device = pick_device() if device is None else torch.device(device)
    name = dtype or default_dtype(device)
    kind = getattr(torch, name, None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"{source}: dtype {name!r} is not one of torch, such as 'bfloat16'.")
    places = _places(source, build_empty(source, revision=revision, dtype=kind), device)
    if device.type == "cuda":
        gc.collect()  # a model that was split over GPUs refers to itself, and would stay there
    model = load_whole(
        AutoModelForCausalLM,
        source,
        revision=revision or "main",
        dtype=kind,
        # Weights are moved to the GPU one by one, to save main memory.
        device_map=places if device.type == "cuda" else None,
    )
    if device.type != "cuda":
        model = model.to(device)
    return cast(PreTrainedModel, model.eval().requires_grad_(False))


def load_tokenizer(source: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of the Hub id or local folder `source`."""
    return AutoTokenizer.from_pretrained(
        source, revision=revision or "main", trust_remote_code=False
    )


def _linear_in_float32(layer: nn.Linear, x: Tensor) -> Tensor:
    return linear(x, layer.weight.to(x.dtype), layer.bias)


def compute_in_float32(model: PreTrainedModel) -> PreTrainedModel:
    """Return `model`, changed in place before it gets adapters, with activations in float32.

    All linear layers but the last keep their dtype, and weights are converted for each
    multiplication. So a model in bfloat16 needs little more memory, and gives the results of a
    fully converted model. On GPUs, products use TF32, which represents bfloat16 exactly.
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


def check_alike(checkpoints: Mapping[str, Checkpoint], prompts: Collection[str]) -> None:
    """Refuse checkpoints with different layers, or with different tokens for `prompts`.

    Checkpoints of one architecture and vocabulary can share an adapter, even if one has
    additional tokens that occur in no prompt.
    """
    last, reference = list(checkpoints.items())[-1]
    for name, checkpoint in checkpoints.items():
        if checkpoint.files and checkpoint.files == reference.files:
            continue
        remedy = "let the recipe train_on each, or on checkpoints of one architecture"
        layers, expected = _layers(checkpoint), _layers(reference)
        if layers != expected:
            layer = next(n for n in [*expected, *layers] if layers.get(n) != expected.get(n))
            raise DamagedFileError(
                f"checkpoints {name} and {last} cannot share an adapter: {layer} is "
                f"{layers.get(layer, 'missing')} in {name} and "
                f"{expected.get(layer, 'missing')} in {last}; {remedy}."
            )
        texts = list(prompts)
        tokens, reference_tokens = (
            open_tokenizer(c)(texts)["input_ids"] for c in (checkpoint, reference)
        )
        if differ := [
            text for text, a, b in zip(texts, tokens, reference_tokens, strict=True) if a != b
        ]:
            raise DamagedFileError(
                f"checkpoints {name} and {last} cannot share an adapter: their vocabularies "
                f"read {differ[0]!r} as different tokens; {remedy}."
            )


def _layers(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the layers that an adapter changes."""
    layers = states.linear_layers(build_empty(hub.fetch_small_checked(checkpoint)))
    return {name: tuple(layer.weight.shape) for name, layer in layers.items()}

"""Load causal language models and their tokenizers, and choose their device and precision."""

import functools
import gc
import logging
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MethodType
from typing import Any, cast

import torch
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import safe_open
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

from persistcal.models import hub
from persistcal.models.checkpoint import (
    ADAPTER,
    ADAPTER_CONFIG,
    INDEX,
    WEIGHTS,
    Checkpoint,
    check_adapter_config,
    check_finite,
    check_keys,
    check_layers,
    check_size,
    read_json,
)
from persistcal.models.sizes import fit_together
from persistcal.store.files import DamagedFileError, FilePath
from persistcal.store.progress import read_sealed

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
    enabled = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if enabled:
            transformers_logging.enable_progress_bar()


def split_model(model: PreTrainedModel, gpu_bytes: Sequence[int]) -> dict[str, int] | None:
    """Return the GPU of each part of a model; None if it fits on one GPU of `gpu_bytes`.

    Weights larger than half a GPU leave too little room for activations, so the layers are
    divided equally. Checkpoints of one architecture are divided in the same way, so that they
    can share an adapter.
    """
    size = sum(parameter.nbytes for parameter in model.parameters())
    if len(gpu_bytes) < 2 or size <= min(gpu_bytes) / 2:
        return None
    names = {module: name for name, module in model.named_modules()}
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    inner, last, n_layers = names[decoder], len(gpu_bytes) - 1, len(decoder.layers)
    places = {f"{inner}.{name}": 0 for name, _ in decoder.named_children() if name != "layers"}
    places[f"{inner}.norm"] = last
    places |= {f"{inner}.layers.{i}": i * len(gpu_bytes) // n_layers for i in range(n_layers)}
    return places | {names[head]: 0 if is_tied(model) else last}


def _places(
    source: str, empty: PreTrainedModel, device: torch.device
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
) -> PreTrainedModel:
    """Return the model of a config without weights, on the device "meta".

    A local folder must contain a complete model of a plausible size.
    """
    if Path(source).is_dir():
        if Path(source, ADAPTER_CONFIG).exists():
            raise DamagedFileError(
                f"{source} holds adapter_config.json, so another model than its config's would "
                "be loaded; merge the adapter into the model, or move it elsewhere."
            )
        path = Path(source, "config.json")
        check_layers(read_json(path), path)
    config = AutoConfig.from_pretrained(
        source, revision=revision or "main", trust_remote_code=False
    )
    with torch.device("meta"):
        empty = kind.from_config(config, dtype=dtype, trust_remote_code=False)
    if Path(source).is_dir():
        check_size(empty, source)
    return empty


def load_whole(kind: Any, source: str, **settings: Any) -> Any:  # noqa: ANN401
    """Load a model from safetensors files that contain exactly its weights.

    `kind` is a class of transformers; its `from_pretrained` receives `settings`.
    """
    with without_progress_bars():
        model, info = kind.from_pretrained(
            source,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            # refused below, like missing weights
            ignore_mismatched_sizes=True,
            **settings,
        )
    files = [Path(source, name) for name in (WEIGHTS, INDEX)]
    location = next((str(path) for path in files if path.exists()), source)
    check_keys(
        location,
        missing=info["missing_keys"],
        unexpected=info["unexpected_keys"],
        mismatched=[name for name, *_ in info["mismatched_keys"]],
    )
    check_finite(model.state_dict().items(), location)
    return model


def open_model(checkpoint: Checkpoint, *, dtype: str = "stored") -> PreTrainedModel:
    """Load the model of a checkpoint with its changes, after a check against its record.

    All models of an average except the first are read into main memory. With the `dtype`
    "float32" the model computes in float32 for every dtype of the weights.
    """
    model = _load_changed(checkpoint)
    return compute_in_float32(model) if dtype == "float32" else model


def _load_changed(
    checkpoint: Checkpoint, device: torch.device | str | None = None
) -> PreTrainedModel:
    """Return the model of a checkpoint after all changes of weights, in order."""
    dtype = checkpoint.dtype
    if checkpoint.merged:
        (share, first), *further = checkpoint.merged
        model = _load_changed(replace(first, dtype=dtype), device)
        other_files = [
            (share_of_part, _load_changed(replace(part, dtype="float32"), "cpu"))
            for share_of_part, part in further
        ]
        model = average_weights(model, share, other_files)
    else:
        model = load_model(hub.fetch_checked(checkpoint), dtype=dtype, device=device)
    if checkpoint.adapter:
        source = hub.fetch_checked(checkpoint.adapter)
        model = merge_adapter(load_adapter(model, source), source)
    if kind := checkpoint.changes.get("quantization"):
        model = round_weights(model, kind)
    return model


def gpu_of_one_copy(checkpoints: Sequence[Checkpoint]) -> torch.device | None:
    """Return the GPU if it is too small for the models of all `checkpoints` together, or None.

    Then `persistcal.training.train.park` keeps them in main memory. Models on several GPUs, or
    without a GPU, stay where they are.
    """
    if pick_device().type != "cuda" or torch.cuda.device_count() > 1:
        return None
    gpu = torch.device("cuda", torch.cuda.current_device())
    checkpoint, total = checkpoints[-1], torch.cuda.get_device_properties(gpu).total_memory
    dtype = getattr(torch, checkpoint.dtype or default_dtype(gpu))
    empty = build_empty(hub.fetch_checked(checkpoint, weights=False), dtype=dtype)
    size = sum(parameter.nbytes for parameter in empty.parameters())
    if fit_together(len(checkpoints), size, total):
        return None
    log.info(
        "%d copies of %.1f GB do not fit into the %.0f GB of the GPU: they are in main memory, "
        "and one at a time is on the GPU",
        len(checkpoints),
        size / 1e9,
        total / 1e9,
    )
    return gpu


def open_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a checkpoint, after a check against its record."""
    return load_tokenizer(hub.fetch_checked(checkpoint, weights=False))


def load_model(
    source: str,
    revision: str | None = None,
    *,
    dtype: str | None = None,
    device: torch.device | str | None = None,
) -> PreTrainedModel:
    """Load a causal language model for inference: in evaluation mode, without gradients.

    `source` is a Hub id or a local folder. Only safetensors files are read, and no code is run.
    A model that is too large for one GPU is split over all visible GPUs.
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
    return model.eval().requires_grad_(False)


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
    multiplication. Thus a model in bfloat16 needs little more memory, and gives the results of
    a fully converted model. On GPUs, products use TF32, which represents bfloat16 exactly.
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
        token_ids = (open_tokenizer(c)(texts)["input_ids"] for c in (checkpoint, reference))
        if differ := [text for text, a, b in zip(texts, *token_ids, strict=True) if a != b]:
            raise DamagedFileError(
                f"checkpoints {name} and {last} cannot share an adapter: their vocabularies "
                f"read {differ[0]!r} as different tokens; {remedy}."
            )


def _layers(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the layers that an adapter changes."""
    layers = linear_layers(build_empty(hub.fetch_checked(checkpoint, weights=False)))
    return {name: tuple(layer.weight.shape) for name, layer in layers.items()}


BITS = {"int8": 8, "int4": 4}
GROUP = 32  # inputs that share a scale in int4


def check_adapter_fits(folder: FilePath, empty: PreTrainedModel) -> None:
    """Refuse an adapter if its matrices do not fit the layers of an empty model."""
    path = str(Path(folder, ADAPTER))
    base = check_adapter_config(folder).get("base_model_name_or_path")
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
                has = f"has {expected}" if expected else "has no such layer"
                raise DamagedFileError(
                    f"{path} is for another base ({base}): it changes {size} "
                    f"{'inputs' if side else 'outputs'} of {name}, where this model {has}; "
                    "give the repo and revision that it was trained on."
                )


@torch.no_grad()
def average_weights(
    model: PreTrainedModel, share: float, others: Sequence[tuple[float, PreTrainedModel]]
) -> PreTrainedModel:
    r"""Return `model` with the weights :math:`\sum_i s_i w_i` of itself and `others`.

    The sum is computed in float32, tensor by tensor. `share` belongs to `model`.
    """
    if any(not is_tied(added) for _, added in others):  # an adapter can have untied it
        head = model.get_output_embeddings()
        own_weight(model, head, "weight", head.weight)
    parameters_of = [
        (weight, dict(added.named_parameters(remove_duplicate=False)))
        for weight, added in others
    ]
    for name, parameter in model.named_parameters():
        total = share * parameter.float()
        for weight, parameters in parameters_of:
            total += weight * parameters[name].to(total.device).float()
        parameter.copy_(total)
    return model


def check_same_shapes(empty: Mapping[str, PreTrainedModel], key: str) -> None:
    """Refuse to merge models with different shapes; `empty` maps names to empty models."""
    shapes = {
        model: {name: tuple(p.shape) for name, p in module.named_parameters()}
        for model, module in empty.items()
    }
    first, *rest = empty
    for more in rest:
        for name in shapes[first] | shapes[more]:
            shape, expected = (shapes[model].get(name, "missing") for model in (first, more))
            if shape != expected:
                raise DamagedFileError(
                    f"config: {key} cannot be averaged: {name} is {shape} in {first} and "
                    f"{expected} in {more}; merge checkpoints of one architecture "
                    "and vocabulary."
                )


def linear_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Return the linear layers of a model but its head, by name."""
    head = model.get_output_embeddings()
    return {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear) and layer is not head
    }


def check_rounding(empty: PreTrainedModel, kind: str, source: str) -> None:
    """Refuse to round the weights of a model, without weights, that has no whole groups."""
    for name, layer in linear_layers(empty).items():
        if kind == "int4" and layer.weight.shape[1] % GROUP:
            raise DamagedFileError(
                f"{source}: quantization int4 takes groups of {GROUP} inputs, but {name} has "
                f"{layer.weight.shape[1]}; set it to int8."
            )


@torch.no_grad()
def round_weights(model: PreTrainedModel, kind: str) -> PreTrainedModel:
    r"""Return `model` with the weights of linear layers, except the head, on a coarse grid.

    This is symmetric weight-only quantization; the model computes in its own dtype, on any
    device. A weight becomes :math:`s \cdot \operatorname{round}(w / s)`, at most
    :math:`2^{b-1} - 1` and at least :math:`-2^{b-1}` steps, with the scale
    :math:`s = \max |w| / (2^{b-1} - \tfrac12)` over a layer's output in int8, and over each
    32 of its inputs in int4.

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
    """Put the adapter in `folder` into `model`, in place, for inference."""
    check_adapter_config(folder)
    path = str(Path(folder, ADAPTER))
    tensors, _ = read_sealed(path, Path(folder, ADAPTER_CONFIG).read_text(encoding="utf-8"))
    check_finite(tensors.items(), path)
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
        except (TypeError, AttributeError, LookupError, re.error) as error:
            raise DamagedFileError(
                f"{Path(folder, ADAPTER_CONFIG)}: peft cannot read it ({error}); save the "
                "adapter again."
            ) from error
    check_keys(path, missing=loaded.missing_keys, unexpected=loaded.unexpected_keys)
    return model.eval()


def merge_adapter(adapted: PeftModel, source: FilePath) -> PreTrainedModel:
    """Add the weights of an adapter, from the folder `source`, to its model, and return it.

    The model is changed in place. Some modules share a weight, such as the head of tied
    embeddings. If the adapter changes only one of them, this module first gets a copy.
    """
    path = Path(source, ADAPTER_CONFIG)
    remedy = "give an adapter without this, or a model into which it is merged"
    layers = [module for module in adapted.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        if hasattr(layer.base_layer, "original_module"):  # peft would merge one of the two only
            raise DamagedFileError(
                f"{path}: the adapter cannot be merged (it changes a matrix and single tokens "
                f"of it); {remedy}."
            )
        module = layer.get_base_layer()
        for name, weight in list(module.named_parameters(recurse=False)):
            own_weight(adapted, module, name, weight)
    try:
        merged = cast(PreTrainedModel, adapted.merge_and_unload(safe_merge=True))
    except (RuntimeError, ValueError, NotImplementedError, AttributeError) as error:
        raise DamagedFileError(
            f"{path}: the adapter cannot be merged ({error}); {remedy}."
        ) from error
    if not is_tied(merged):
        merged.config.tie_word_embeddings = False  # also for a copy that is saved
    return merged.eval()


def is_tied(model: PreTrainedModel) -> bool:
    """Return whether head and input embeddings of a model are one tensor."""
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def own_weight(model: nn.Module, module: nn.Module, name: str, weight: nn.Parameter) -> None:
    """Give `module`, a part of `model`, a copy of a `weight` that other modules share."""
    users = [m for m in model.modules() if any(p is weight for p in m._parameters.values())]
    if len(users) > 1:
        setattr(module, name, nn.Parameter(weight.detach().clone(), requires_grad=False))

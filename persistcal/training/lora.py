"""One LoRA adapter in several models at once: the same parameters, not copies.

The models are checkpoints of one architecture. Each has peft's LoRA layers on all
linear layers except the LM head, and all share the same tensors A and B, so that
autograd sums their gradients over the models. Nothing else is trained.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.models.checkpoint import ADAPTER, ADAPTER_CONFIG
from persistcal.store.progress import seal


class Adapter(dict[str, nn.Parameter]):
    """Parameters by name within the model, such as "….q_proj.lora_A": zeros of float32.

    The parameters of a device are views of one tensor in `whole`, and so are their gradients,
    so that optimizer, norms and sums over ranks need few kernels.

    >>> adapter = Adapter({"a": ((2, 2), "cpu"), "b": ((3,), "cpu")})
    >>> adapter.whole[0].grad[4:] = 1.0
    >>> adapter["b"].grad
    tensor([1., 1., 1.])
    """

    def __init__(self, layout: Mapping[str, tuple[Sequence[int], torch.device | str]]) -> None:
        places: dict[torch.device, list[str]] = {}
        for name, (_, device) in layout.items():
            places.setdefault(torch.device(device), []).append(name)
        self._layout = {
            device: {name: torch.Size(layout[name][0]) for name in names}
            for device, names in places.items()
        }
        sizes = [sum(shape.numel() for shape in s.values()) for s in self._layout.values()]
        self.whole = [torch.zeros(n, device=d) for n, d in zip(sizes, places, strict=True)]
        for whole in self.whole:
            whole.grad = torch.zeros_like(whole)
        parts = self.parts(self.whole)
        super().__init__((name, nn.Parameter(parts[name])) for name in layout)
        self.clear_gradients()

    def parts(self, whole: Iterable[Tensor]) -> dict[str, Tensor]:
        """Return views of tensors with the layout of `whole`, by the parameters' names."""
        views = {}
        for tensor, shapes in zip(whole, self._layout.values(), strict=True):
            pieces = tensor.split([shape.numel() for shape in shapes.values()])
            for (name, shape), piece in zip(shapes.items(), pieces, strict=True):
                views[name] = piece.view(shape)
        return views

    def clear_gradients(self) -> None:
        """Set all gradients to zero."""
        gradients = [cast(Tensor, whole.grad).zero_() for whole in self.whole]
        for name, gradient in self.parts(gradients).items():
            self[name].grad = gradient


def share_adapter(models: Iterable[PreTrainedModel], *, rank: int, alpha: int) -> Adapter:
    """Put one adapter into all `models`, in place, and return its parameters.

    They are checkpoints of one architecture, each layer on the same device in all of them. The
    adapter adds ``alpha / rank * B A`` to each weight. It is of float32 whatever the dtype of
    the models, and all zero until `initialise`.
    """
    shared: Adapter | None = None
    for index, model in enumerate(models):
        model.requires_grad_(False)
        config = LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear")
        # On the meta device, because peft's own values are replaced at once.
        inject_adapter_in_model(config, model, low_cpu_mem_usage=True)
        layers = {
            n: layer for n, layer in model.named_modules() if isinstance(layer, LoraLayer)
        }
        factors = {
            f"{name}.{part}": getattr(layer, part)["default"]
            for name, layer in layers.items()
            for part in ("lora_A", "lora_B")
        }
        shapes = {name: factor.weight.shape for name, factor in factors.items()}
        if shared is None:
            places = {
                name: cast(Tensor, layer.get_base_layer().weight).device
                for name, layer in layers.items()
            }
            shared = Adapter(
                {n: (shape, places[n.rpartition(".")[0]]) for n, shape in shapes.items()}
            )
        if shapes != {name: parameter.shape for name, parameter in shared.items()}:
            raise ValueError(
                f"Checkpoint {index + 1} of the adapter does not have the linear layers of the "
                "first one; train together only checkpoints of one architecture."
            )
        for name, factor in factors.items():
            factor.weight = shared[name]
    assert shared is not None, "no models"
    return shared


@torch.no_grad()
def initialise(adapter: Mapping[str, nn.Parameter], seed: int) -> None:
    r"""Set A to draws from U(-1/√n, 1/√n), n the layer's inputs, and B to zero.

    The distribution is peft's default. The draws depend only on the seed and the parameter's
    name, never on the models or torch's global generator.
    """
    for name, parameter in adapter.items():
        if name.endswith("lora_B"):
            parameter.zero_()
            continue
        generator = np.random.default_rng([seed, *name.encode()])
        bound = 1 / math.sqrt(parameter.shape[1])
        parameter.copy_(torch.from_numpy(generator.uniform(-bound, bound, parameter.shape)))


def adapter_files(
    adapter: Adapter, *, rank: int, alpha: int, base_model: str
) -> dict[str, bytes]:
    """Return the files of `adapter` for `peft.PeftModel.from_pretrained`, by name.

    The same adapter gives the same bytes in every run. The weights carry a digest of
    both files, which `load_adapter` compares; `base_model` is for information.
    """
    layers = sorted({name.split(".")[-2] for name in adapter})
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        task_type="CAUSAL_LM",
        base_model_name_or_path=base_model,
        inference_mode=True,
    ).to_dict()
    config |= {"peft_type": "LORA", "target_modules": layers}
    tensors = {
        f"base_model.model.{name}.weight": parameter.detach().cpu().contiguous()
        for name, parameter in sorted(adapter.items())
    }
    text = json.dumps(config, indent=2, sort_keys=True)
    return {
        ADAPTER_CONFIG: text.encode(),
        ADAPTER: seal(tensors, {"format": "pt"}, text),
    }

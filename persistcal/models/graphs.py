"""Steps of a model as CUDA graphs, and norms as single kernels."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import rms_norm
from transformers import PreTrainedModel

from persistcal.store.jobs import is_full

log = logging.getLogger(__name__)


class Graphs:
    """Steps of a model on one GPU as CUDA graphs; elsewhere `in_use` is false.

    A step whose tensors have the same sizes and addresses is computed once, then captured, and
    then replayed.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        devices = {parameter.device for parameter in model.parameters()}
        self.in_use = model.device.type == "cuda" and len(devices) == 1
        self._name = type(model).__name__
        self._graphs: dict[object, torch.cuda.CUDAGraph | None] = {}
        self._addresses: object = None

    def run(self, size: object, addresses: object, step: Callable[[], None]) -> bool:
        """Make a step, and return True; or False if the model allows no graph.

        All graphs are dropped if `addresses`, a number of their changes, is another one.
        """
        if addresses != self._addresses:
            self._graphs.clear()
            self._addresses = addresses
        if size not in self._graphs:
            self._graphs[size] = None
            if waits_for_gpu(step):
                self._give_up("waits for the GPU")
            return True
        if (graph := self._graphs[size]) is None:
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph):
                    step()
            except RuntimeError as error:
                if is_full(error):
                    raise
                self._give_up(f"cannot be captured ({str(error).splitlines()[0]})")
                return False
            self._graphs[size] = graph
        graph.replay()
        return True

    def _give_up(self, reason: str) -> None:
        log.warning("A step of %s %s, so it runs without CUDA graphs", self._name, reason)
        self.in_use = False


def waits_for_gpu(step: Callable[[], None]) -> bool:
    """Make a step, and return whether it waited for the GPU."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return any("called a synchronizing" in str(warning.message) for warning in caught)


@contextmanager
def fused_norms(model: PreTrainedModel) -> Iterator[None]:
    """Compute norms by torch's kernel if it gives the same numbers."""
    fused: list[Any] = [norm for norm in model.modules() if rounds_like_kernel(norm)]
    for norm in fused:
        settings = {"weight": norm.weight, "eps": norm.variance_epsilon}
        norm.forward = partial(rms_norm, normalized_shape=norm.weight.shape, **settings)
    try:
        yield
    finally:
        for norm in fused:
            del norm.forward


@torch.inference_mode()
def rounds_like_kernel(module: torch.nn.Module) -> bool:
    """Return whether a module is a norm with the numbers of torch's kernel."""
    weight, eps = (getattr(module, name, None) for name in ("weight", "variance_epsilon"))
    is_plain = type(module).forward.__code__.co_argcount == 2 and "forward" not in vars(module)
    if not is_plain or not isinstance(weight, Tensor) or not eps:
        return False
    numbers = torch.arange(8 * len(weight), device=weight.device, dtype=torch.float32)
    hidden = (numbers.sin() * 3).to(weight.dtype).view(1, 8, -1)
    expected = type(module).forward(module, hidden)  # without hooks
    difference = (rms_norm(hidden, weight.shape, weight, eps) - expected).abs()
    # In half precision another order of rounding changes many numbers, and a sum few.
    return bool((difference > 2**-20 * expected.abs()).float().mean() < 0.01)

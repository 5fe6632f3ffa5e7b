"""RMS norms whose gradient takes half the kernels and keeps a third of the activations.

In transformers a norm is six operations or more, each of which autograd differentiates alone
and keeps float32 inputs for. A module of its own: what only loads adapters does not run it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel


class RootMeanSquareNorm(Function):
    """The norm as transformers computes it, bit for bit; its weight is a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, round_first: bool) -> Tensor:  # noqa: ANN401
        """Return the norm; `round_first`: to the dtype of x before weighting, as in Llama."""
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, scale)
        unit = wide * scale
        return weight * unit.to(x.dtype) if round_first else (weight * unit).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        r"""Return the gradient of x.

        With :math:`u = s x` and :math:`g` that of the result times the weight it is
        :math:`s (g - u \,\mathrm{mean}(g u))`.
        """
        x, weight, scale = ctx.saved_tensors
        unit, scaled = x * scale, (gradient * scale).mul_(weight)
        along = (scaled * unit).mean(-1, keepdim=True)
        return scaled.addcmul_(unit, along, value=-1).to(x.dtype), None, None, None


@torch.no_grad()
def _rounds_first(norm: nn.Module) -> bool | None:
    """Return whether a norm rounds first; None for a module that computes something else."""
    weight, eps = getattr(norm, "weight", None), getattr(norm, "variance_epsilon", None)
    if eps is None or not isinstance(weight, Tensor) or weight.ndim != 1:
        return None
    probe = torch.linspace(-3, 3, 4 * len(weight), device=weight.device).view(4, -1)
    probe = probe.to(weight.dtype)
    for round_first in (False, True):
        if torch.equal(RootMeanSquareNorm.apply(probe, weight, eps, round_first), norm(probe)):
            return round_first
    return None


def _shortened(norm: nn.Module, round_first: bool) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        return RootMeanSquareNorm.apply(x, norm.weight, norm.variance_epsilon, round_first)

    return forward


def shorten_norms(model: PreTrainedModel) -> None:
    """Compute the RMS norms of a frozen `model` so, those that are found to be the same."""
    for norm in model.modules():
        round_first = _rounds_first(norm)
        if round_first is not None:
            # In a model that is split over GPUs accelerate's hook calls the latter.
            name = "_old_forward" if hasattr(norm, "_hf_hook") else "forward"
            setattr(norm, name, _shortened(norm, round_first))

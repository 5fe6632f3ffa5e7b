"""Layers whose gradients take few kernels: linear ones with LoRA, and RMS norms.

Of LoRA peft computes product, both factors, scale and sum one by one, and autograd adds each
gradient to those before it; here the sums are part of the products. A norm is six operations or
more in transformers, each of which autograd differentiates alone and keeps float32 inputs for;
here its gradient takes half the kernels and keeps a third of the activations.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from peft.tuners.lora import Linear
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from transformers import PreTrainedModel


def _scaled_product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """Return ``scale * left @ right``."""
    unread = left.new_empty(())
    return torch.addmm(unread, left, right, beta=0, alpha=scale)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``total + left @ right`` in its place, rounded once to the dtype of `total`."""
    if total.dtype == left.dtype:
        return total.addmm_(left, right)
    return total.add_(left @ right)


def _add_gradient(parameter: Tensor, left: Tensor, right: Tensor) -> Tensor | None:
    """Add ``left.T @ right`` to the gradient of `parameter`; the first one is returned."""
    if parameter.grad is None:
        return left.T @ right
    parameter.grad.addmm_(left.T, right)
    return None


class LoraProduct(Function):
    """``x W' + bias + scale (x A') B'``, for which W and bias are constants.

    The factors A and B keep their dtype, in which all that involves them is computed, as
    in peft; the result has that of x.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        base: nn.Linear,
        a: Tensor,
        b: Tensor,
        scale: float,
    ) -> Tensor:
        """Return the result and keep x and its scaled product with A."""
        rows = x.flatten(0, -2)
        low = _scaled_product(rows.to(a.dtype), a.T, scale)
        ctx.base, ctx.scale = base, scale
        ctx.save_for_backward(x, a, b, low)
        whole = linear(rows, base.weight.to(x.dtype), base.bias)
        whole = _add_product(whole, low, b.T)
        return whole.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradient of x; those of A and B are added where some are already."""
        x, a, b, low = ctx.saved_tensors
        rows = gradient.flatten(0, -2)
        exact = rows.to(a.dtype)
        up = _scaled_product(exact, b, ctx.scale)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = rows @ ctx.base.weight.to(x.dtype)
            of_x = _add_product(of_x, up, a).view_as(x)
        of_a = _add_gradient(a, up, x.flatten(0, -2).to(a.dtype))
        of_b = _add_gradient(b, exact, low)
        return of_x, None, of_a, of_b, None


class LoraLinear(Linear):
    """peft's linear layer with one adapter, named "default", that is always active."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output with the adapter's."""
        a, b = (part["default"].weight for part in (self.lora_A, self.lora_B))
        base = cast(nn.Linear, self.get_base_layer())
        return cast(Tensor, LoraProduct.apply(x, base, a, b, self.scaling["default"]))


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

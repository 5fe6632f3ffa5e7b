"""A linear layer with LoRA whose gradient takes few kernels.

peft computes product, both factors, scale and sum one by one, and autograd adds each gradient
to those before it; here the sums are part of the products.
"""

from typing import Any, cast

import torch
from peft.tuners.lora import Linear
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear


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

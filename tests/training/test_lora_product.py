"""LoRA as one autograd function against peft's layer."""

import pytest
import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch import nn

from persistcal.training.lora_product import LoraLinear


def layers(dtype, bias):
    """peft's layer and ours, with the same weights."""
    torch.manual_seed(3)
    base = nn.Linear(24, 40, bias=bias).to(dtype).requires_grad_(False)
    config = LoraConfig(r=4, lora_alpha=8)
    pair = [kind(base, "default", config, r=4, lora_alpha=8) for kind in (Linear, LoraLinear)]
    for theirs, ours in zip(pair[0].parameters(), pair[1].parameters(), strict=True):
        if theirs.requires_grad:
            theirs.data = 0.1 * torch.randn(theirs.shape)
            ours.data = theirs.data.clone()
    return pair


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
def test_result_and_gradients_are_those_of_peft(dtype, bias):
    values, weights = torch.randn(2, 3, 5, 24).to(dtype), torch.randn(3, 5, 40).to(dtype)
    found = []
    for layer in layers(dtype, bias):
        factors = layer.lora_A["default"].weight, layer.lora_B["default"].weight
        gradients = []
        for turn in values:  # the second time gradients are added to those of the first
            x = turn.clone().requires_grad_()
            result = layer(x)
            (result * weights).sum().backward()
            gradients.append(x.grad)
        assert result.dtype == dtype and factors[0].grad.dtype == torch.float32
        found.append((result.detach(), *gradients, *(factor.grad for factor in factors)))
    rounding = 4 * torch.finfo(dtype).eps
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=rounding, atol=rounding * 4)

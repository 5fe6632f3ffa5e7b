"""Layers with gradients of their own against those of peft and transformers."""

import copy

import pytest
import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch import nn
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo3.modeling_olmo3 import Olmo3RMSNorm

from persistcal.training.kernels import LoraLinear
from persistcal.training.norms import shorten_norms

DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize(("dtype", "bias"), [*zip(DTYPES, (True, False), strict=True)])
def test_lora_and_its_gradients_are_those_of_peft(dtype, bias):
    torch.manual_seed(3)
    base = nn.Linear(24, 40, bias=bias).to(dtype).requires_grad_(False)
    config = LoraConfig(r=4, lora_alpha=8)
    pair = [kind(base, "default", config, r=4, lora_alpha=8) for kind in (Linear, LoraLinear)]
    for theirs, ours in zip(pair[0].parameters(), pair[1].parameters(), strict=True):
        if theirs.requires_grad:
            theirs.data = 0.1 * torch.randn(theirs.shape)
            ours.data = theirs.data.clone()
    values, weights = torch.randn(2, 3, 5, 24).to(dtype), torch.randn(3, 5, 40).to(dtype)
    found = []
    for layer in pair:
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


def norms(kind, dtype):
    torch.manual_seed(1)
    theirs = kind(24)
    theirs.weight.data.uniform_(-2, 2)
    theirs = theirs.to(dtype).requires_grad_(False)
    ours = copy.deepcopy(theirs)
    shorten_norms(ours)
    return theirs, ours


@pytest.mark.parametrize("kind", [Olmo3RMSNorm, LlamaRMSNorm])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_norm_and_its_gradient_are_those_of_transformers(kind, dtype):
    values, weights = torch.randn(2, 5, 7, 24).to(dtype)
    found = []
    for norm in norms(kind, dtype):
        x = values.clone().requires_grad_()
        result = norm(x)
        (result * weights).sum().backward()
        found.append((result, x.grad))
    assert "forward" in vars(norm)
    (expected, there), (result, here) = found
    assert torch.equal(result, expected)
    # In bfloat16 transformers' gradient is rounded once more on its way.
    rounding = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 1e-6}
    if dtype == torch.bfloat16:
        rounding["atol"] = 1e-2
    torch.testing.assert_close(here, there, **rounding)


def test_a_norm_of_another_formula_stays_as_it_is():
    """Gemma's weight counts from one."""
    theirs, ours = norms(Gemma2RMSNorm, torch.float32)
    assert "forward" not in vars(ours)
    assert torch.equal(ours(torch.ones(1, 24)), theirs(torch.ones(1, 24)))
    ours.variance_epsilon = ours.eps  # and if it had the attribute, it would be found out
    shorten_norms(ours)
    assert "forward" not in vars(ours)

"""Norms with a gradient of their own against those of transformers."""

import copy

import pytest
import torch
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo3.modeling_olmo3 import Olmo3RMSNorm

from persistcal.training.norms import shorten_norms


def norms(kind, dtype):
    torch.manual_seed(1)
    theirs = kind(24)
    theirs.weight.data.uniform_(-2, 2)
    theirs = theirs.to(dtype).requires_grad_(False)
    ours = copy.deepcopy(theirs)
    shorten_norms(ours)
    return theirs, ours


def gradient(norm, values, weights):
    x = values.clone().requires_grad_()
    result = norm(x)
    (result * weights).sum().backward()
    return result, x.grad


@pytest.mark.parametrize("kind", [Olmo3RMSNorm, LlamaRMSNorm])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_norm_and_its_gradient_are_those_of_transformers(kind, dtype):
    theirs, ours = norms(kind, dtype)
    assert "forward" in vars(ours)
    values, weights = torch.randn(2, 5, 7, 24).to(dtype)
    expected, there = gradient(theirs, values, weights)
    result, here = gradient(ours, values, weights)
    assert torch.equal(result, expected)
    # In bfloat16 transformers' gradient is rounded once more on its way.
    torch.testing.assert_close(
        here,
        there,
        rtol=4 * torch.finfo(dtype).eps,
        atol=1e-2 if dtype == torch.bfloat16 else 1e-6,
    )


def test_a_norm_of_another_formula_stays_as_it_is():
    """Gemma's weight counts from one."""
    theirs, ours = norms(Gemma2RMSNorm, torch.float32)
    assert "forward" not in vars(ours)
    assert torch.equal(ours(torch.ones(1, 24)), theirs(torch.ones(1, 24)))
    ours.variance_epsilon = ours.eps  # and if it had the attribute, it would be found out
    shorten_norms(ours)
    assert "forward" not in vars(ours)

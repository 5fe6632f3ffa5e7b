"""Pretended GPUs refuse mixed devices; tests of full memory use their limits."""

import pytest
import torch

HERE, THERE = torch.device("cuda:0"), torch.device("cuda:1")


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + x.cpu(),
        lambda x: x.to(THERE) * x,
        lambda x: torch.cat([x, x.cpu()]),
        lambda x: x.gather(0, torch.zeros(1, dtype=torch.long)),
        lambda x: x @ x.cpu(),
        lambda x: torch.nn.functional.embedding(torch.tensor([0]), x[:, None]),
        lambda x: x.new_zeros(2).copy_(x[:2]).index_copy_(0, torch.tensor([0]), x[:1]),
    ],
)
def test_devices_cannot_be_mixed(mix):
    with pytest.raises(RuntimeError, match=r"(on|in) the same device"):
        mix(torch.ones(3, device=HERE))

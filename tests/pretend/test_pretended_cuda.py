"""Pretended GPUs refuse mixed devices and have limited memory."""

import gc

import pretended_cuda
import pytest
import torch

HERE, THERE = torch.device("cuda:0"), torch.device("cuda:1")


def test_tensors_are_on_their_device_and_hold_what_they_should():
    x = torch.arange(6.0, device=HERE).view(2, 3)
    y = (x.T @ x).to(THERE)
    assert (x.device, y.device) == (HERE, THERE)
    # columns (0, 3), (1, 4), (2, 5)
    assert y.tolist() == [[9, 12, 15], [12, 17, 22], [15, 22, 29]]
    x[:, 1:] += 1
    assert x.cpu().tolist() == [[0, 2, 3], [3, 5, 6]]
    with torch.inference_mode():
        assert torch.zeros(2, device=HERE)[1:].is_inference()


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


def test_memory_ends_and_is_given_back():
    gc.collect()
    n_before = torch.cuda.memory_allocated(HERE)
    with pretended_cuda.limited(4000):
        held = torch.ones(900, device=HERE)
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            held + 1
        del held
        assert torch.ones(900, device=HERE).sum() == 900
    assert torch.cuda.memory_allocated(HERE) == n_before
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(1, device="cuda:2")


def test_a_failure_comes_once_and_where_it_is_asked_for():
    x = torch.ones(3, device=HERE)
    with pretended_cuda.failing(1):
        y = x + 1
        with pytest.raises(torch.OutOfMemoryError):
            y * y
        assert (y * y).tolist() == [4, 4, 4]
    with pretended_cuda.failing(0, "CUBLAS_STATUS_ALLOC_FAILED"):
        with pytest.raises(RuntimeError, match="CUBLAS") as error:
            x + 1
        assert not isinstance(error.value, torch.OutOfMemoryError)

"""One computation in several processes: ranks that sum their gradients.

A process that is alone is rank 0 of 1, and nothing here does anything then.
"""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from persistcal.store.jobs import Job


def index() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def count() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def own_share(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items that this process works on."""
    return items[index() :: count()]


def own_part(job: Job) -> Job:
    """Return the job of this process: some of its threads, and outputs for the first only."""
    outputs = {} if index() > 0 else job.outputs
    return dataclasses.replace(job, threads=max(1, job.threads // count()), outputs=outputs)


def sum_over_ranks(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over all processes, in one flat buffer.

    Every process gets the very same sums, so that replicas stay equal.
    """
    if count() == 1:
        return
    flat = torch.cat([tensor.detach().flatten().to(_device()).float() for tensor in tensors])
    dist.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.detach().copy_(part.view_as(tensor))


def copy_from_first(tensors: Sequence[Tensor]) -> None:
    """Overwrite each tensor by that of rank 0."""
    if count() == 1:
        return
    for tensor in tensors:
        copied = tensor.detach().to(_device()).contiguous()
        dist.broadcast(copied, src=0)
        tensor.detach().copy_(copied)


def check_equal(what: str, value: object) -> None:
    """Refuse, in every process, a `value` that is not the same in all; `what` names it."""
    if count() == 1:
        return
    digest = int.from_bytes(sha256(repr(value).encode()).digest()[:7])
    extremes = torch.tensor([digest, -digest], device=_device())
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
    if extremes[0] != -extremes[1]:
        raise ValueError(
            f"The ranks do not have the same {what}; train together only checkpoints of one "
            "architecture."
        )


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def join(timeout_min: float) -> None:
    """Become one of the ranks that the environment describes, in torchrun's variables.

    On GPUs each rank sees its own only, by `persistcal.training.launch`. It waits
    `timeout_min` for the others before it fails: for one that hangs, and long enough for the
    slowest to load its models. One that ends is noticed at once.
    """
    on_gpus = torch.cuda.is_available()
    dist.init_process_group(
        "nccl" if on_gpus else "gloo",
        timeout=timedelta(minutes=timeout_min),
        device_id=torch.device("cuda", 0) if on_gpus else None,
    )


def leave() -> None:
    """Part from the other ranks."""
    dist.destroy_process_group()

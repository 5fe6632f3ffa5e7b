"""Sum gradients over several processes, called ranks.

A single process is rank 0 of 1; then these functions change nothing.
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
    """Return every n-th item, for n ranks, beginning with the index of this rank."""
    return items[index() :: count()]


def own_part(job: Job) -> Job:
    """Return the job of this rank: its share of threads, and outputs only for rank 0."""
    outputs = {} if index() > 0 else job.outputs
    return dataclasses.replace(job, threads=max(1, job.threads // count()), outputs=outputs)


def sum_over_ranks(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over all ranks; the sums are identical in all ranks."""
    if count() == 1:
        return
    flat = torch.cat([tensor.detach().flatten().to(_device()).float() for tensor in tensors])
    dist.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.detach().copy_(part.view_as(tensor))


def copy_from_first(tensors: Sequence[Tensor]) -> None:
    """Overwrite each tensor with rank 0's values."""
    if count() == 1:
        return
    for tensor in tensors:
        copied = tensor.detach().to(_device()).contiguous()
        dist.broadcast(copied, src=0)
        tensor.detach().copy_(copied)


def check_equal(name: str, value: object) -> None:
    """Raise a ValueError in all ranks if `value` differs between them."""
    if count() == 1:
        return
    digest = int.from_bytes(sha256(repr(value).encode()).digest()[:7])
    extremes = torch.tensor([digest, -digest], device=_device())
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
    if extremes[0] != -extremes[1]:
        raise ValueError(
            f"The ranks do not have the same {name}; train together only checkpoints of one "
            "architecture."
        )


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def join(timeout_min: float) -> None:
    """Join the other ranks, as torchrun's environment variables specify.

    `persistcal.training.launch` limits each rank to one GPU. A rank waits `timeout_min` for
    hanging or slow ranks before it fails, and fails at once if another rank ends.
    """
    on_gpus = torch.cuda.is_available()
    dist.init_process_group(
        "nccl" if on_gpus else "gloo",
        timeout=timedelta(minutes=timeout_min),
        device_id=torch.device("cuda", 0) if on_gpus else None,
    )


def leave() -> None:
    """Leave the group of ranks."""
    dist.destroy_process_group()

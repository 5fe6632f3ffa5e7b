"""The state of a training: adapter, optimizer and history, to save and to go on from."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW

from persistcal.store.progress import Snapshot
from persistcal.training.lora import Adapter
from persistcal.training.ranks import copy_from_first

MOMENTS = ("exp_avg", "exp_avg_sq")


def _tensors(adapter: Adapter, optimizer: AdamW) -> dict[str, Tensor]:
    moments = {
        f"{name}.{moment}": part
        for moment in MOMENTS
        for name, part in adapter.parts(
            optimizer.state[whole][moment] for whole in adapter.whole
        ).items()
    }
    return {name: parameter.detach() for name, parameter in adapter.items()} | moments


def take_snapshot(
    adapter: Adapter, optimizer: AdamW, rows: list[Any], micro_batch: int
) -> Snapshot:
    """Return the state after as many steps as there are `rows` of history."""
    record = {"rows": rows, "micro_batch": micro_batch}
    return Snapshot(_tensors(adapter, optimizer), record)


def restore(
    adapter: Adapter, optimizer: AdamW, snapshot: Snapshot | None, micro_batch: int
) -> tuple[int, list[Any], int]:
    """Put all ranks into the state of the snapshot that rank 0 has, if it has one.

    Returns
    -------
    n_steps, rows, micro_batch : int, list, int
        Steps that are done, their history (empty on other ranks than 0) and the micro-batch
        of the snapshot; without one, as given.
    """
    rows = snapshot.record["rows"] if snapshot else []
    if snapshot:
        micro_batch = snapshot.record["micro_batch"]
    standing = torch.tensor([len(rows), micro_batch])
    copy_from_first([standing])
    n_steps, micro_batch = standing.tolist()
    if n_steps:
        for whole in adapter.whole:
            moments = {moment: torch.zeros_like(whole) for moment in MOMENTS}
            optimizer.state[whole] = {"step": torch.tensor(float(n_steps)), **moments}
        tensors = _tensors(adapter, optimizer)
        if snapshot:
            for name, tensor in tensors.items():
                tensor.copy_(snapshot.tensors[name])
        copy_from_first(list(tensors.values()))
    return n_steps, rows, micro_batch

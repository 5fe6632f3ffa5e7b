"""Run a model over many prompts in batches: shards, memory and finished work."""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import psutil
import torch

from persistcal.artifacts import Table

log = logging.getLogger(__name__)


def compute_now(number: int, compute: Callable[[], list]) -> list:
    """Return the results of batch `number` without keeping them anywhere."""
    return compute()


class Work(NamedTuple):
    """Which batches are computed here, and what keeps their results.

    Attributes
    ----------
    shard, n_shards : int
        Of every `n_shards` consecutive batches the one at `shard` is computed. Shards
        are made of whole batches, so that their number does not change any result.
    remember : callable
        Given the number of a batch and a function that computes its results, returns
        them; such as ``partial(progress.remember, "beams")``.
    """

    shard: int = 0
    n_shards: int = 1
    remember: Callable[[int, Callable[[], list]], list] = compute_now


class Halving:
    """Computes a batch at once, or in halves where it does not fit into memory.

    Parameters
    ----------
    compute : callable
        From items to a list with a result for each.
    size : int
        Items at once at first. It is halved for good by each batch that does not fit.
    """

    def __init__(self, compute: Callable[[list[int]], list], size: int) -> None:
        self.compute, self.size = compute, size

    def __call__(self, items: list[int]) -> list:
        """Return the results of `items`.

        Raises
        ------
        MemoryError
            When a single item does not fit.
        """
        results: list[Any] = []
        while len(results) < len(items):
            part = items[len(results) : len(results) + self.size]
            try:
                results += self.compute(part)
                continue
            except torch.OutOfMemoryError as error:
                message = str(error)
            # Only here, after the exception, are the tensors of its frames free.
            free_memory()
            if len(part) == 1:
                raise MemoryError(
                    "One question alone does not fit into the GPU's memory; use a larger "
                    f"GPU, or several that share the model ({message})."
                )
            self.size = (len(part) + 1) // 2
            log.warning(
                "A batch of %d does not fit into the GPU's memory; going on with %d at a time",
                len(part),
                self.size,
            )
        return results


def free_memory() -> None:
    """Give memory that no tensor holds back to the GPU."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def free_bytes(devices: Iterable[torch.device]) -> int:
    """Return the memory that tensors can still take on all of `devices` together."""
    total = 0
    for device in set(devices):
        if device.type == "cuda":
            unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            total += torch.cuda.mem_get_info(device)[0] + unused
        else:
            total += psutil.virtual_memory().available
    return total


def in_batches(
    compute: Callable[[list[int]], list],
    order: Sequence[int],
    *,
    batch_size: int,
    work: Work,
    at_once: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> dict[int, Any]:
    """Return the results of the items that `work` computes.

    Parameters
    ----------
    compute : callable
        From items of one batch to a list with a result for each.
    order : sequence of int
        The items; batches are cut from it.
    batch_size : int
    work : Work
    at_once : int, optional
        Items of a batch that are computed together, by default all of them. Batches are
        what shards are made of and what is remembered, so they must not depend on the
        memory of a machine; this may.
    progress : callable, optional
        Called with the number of items of each batch that is done.

    Examples
    --------
    The second of two shards of four batches:

    >>> work = Work(shard=1, n_shards=2)
    >>> in_batches(lambda batch: [i * i for i in batch], range(8), batch_size=2, work=work)
    {2: 4, 3: 9, 6: 36, 7: 49}
    """
    halving = Halving(compute, min(batch_size, at_once or batch_size))
    results: dict[int, Any] = {}
    for number, start in enumerate(range(0, len(order), batch_size)):
        if number % work.n_shards != work.shard:
            continue
        batch = list(order[start : start + batch_size])
        computed = work.remember(number, partial(halving, batch))
        results |= dict(zip(batch, computed, strict=True))
        if progress is not None:
            progress(len(batch))
    return results


def in_order(frame: pd.DataFrame, table: Table, question_ids: Sequence[str]) -> pd.DataFrame:
    """Sort `frame` by the key of `table`, questions in the order of `question_ids`.

    The order is the same whether the rows came from one shard or from several.

    Examples
    --------
    >>> from persistcal.artifacts import BEAMS
    >>> rows = [("b", 1, "x"), ("a", 0, "y"), ("b", 0, "z")]
    >>> frame = pd.DataFrame(rows, columns=["question_id", "beam", "text"])
    >>> in_order(frame, BEAMS, ["b", "a"])["text"].tolist()
    ['z', 'x', 'y']
    """
    rank = {question_id: i for i, question_id in enumerate(question_ids)}
    order = frame[list(table.key)].assign(question_id=frame["question_id"].map(rank))
    return frame.iloc[order.reset_index(drop=True).sort_values(list(table.key)).index]

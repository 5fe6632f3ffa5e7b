"""Run a model over many prompts in batches: shards, memory and finished work."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import psutil
import torch

from persistcal.store.artifacts import Table
from persistcal.store.jobs import Job, is_full
from persistcal.store.progress import Progress

log = logging.getLogger(__name__)


def compute_now(number: int, compute: Callable[[], list]) -> list:
    """Return the results of a batch without keeping them anywhere."""
    return compute()


class Work(NamedTuple):
    """The batches of one shard: every `n_shards`-th one, from number `shard` on.

    Batches are whole, so the number of shards changes no result. `remember` returns the stored
    results of a batch, given its number and a function that computes them.
    """

    shard: int = 0
    n_shards: int = 1
    remember: Callable[..., list] = compute_now

    @classmethod
    @contextmanager
    def of_job(cls, job: Job) -> Iterator["Work"]:
        """Yield the shard that a job computes; `of` names its parts in the saved progress."""
        shard, n_shards = (job.settings.get(name) for name in ("shard", "n_shards"))
        with Progress.of_job(job) as progress:
            remember = progress.remember if progress else compute_now
            yield cls(shard or 0, n_shards or 1, remember)

    def of(self, name: str) -> "Work":
        """Return the work for a computation of a job with several."""
        return self._replace(remember=partial(self.remember, name))


def unless_full(compute: Callable[[], list], n_together: int) -> list | None:
    """Return the results of `compute`, or None if they do not fit into a GPU's memory."""
    try:
        return compute()
    except RuntimeError as error:
        if not is_full(error):
            raise
        message = str(error)
    # The tensors of the failed frames are free only after the exception.
    free_memory()
    if n_together == 1:
        raise MemoryError(
            "One question alone does not fit into the GPU's memory; use a larger "
            f"GPU, or several that share the model ({message})."
        )
    log.warning(
        "A batch of %d does not fit into the GPU's memory and is computed in halves, as is "
        "each that does not; a smaller batch_size, for all jobs, would lose no time on it",
        n_together,
    )
    return None


def in_halves(compute: Callable[[list[int]], list], items: list[int]) -> list:
    """Return the results of `items`, computed together, or in halves if memory is too small.

    The next batch is tried whole again, so that the items computed together do not depend on
    earlier batches of the same job.
    """
    results = unless_full(partial(compute, items), len(items))
    if results is not None:
        return results
    half = (len(items) + 1) // 2
    return in_halves(compute, items[:half]) + in_halves(compute, items[half:])


def free_memory() -> None:
    """Free unused GPU memory."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def warn_of_little_memory(device: torch.device, needed: float) -> None:
    """Log a warning if a CPU's memory is too small: the system would kill the job."""
    free = psutil.virtual_memory().available
    if device.type == "cpu" and needed > free:
        log.warning(
            "A batch may take %.1f GB of memory and %.1f GB are free; should the job be "
            "killed, lower decoding.memory_gb for all jobs",
            needed / 1e9,
            free / 1e9,
        )


def in_batches(
    compute: Callable[[list[int]], list],
    order: Sequence[int],
    *,
    batch_size: int,
    work: Work,
    progress: Callable[[int], object] | None = None,
) -> dict[int, Any]:
    """Return the results of the items that `work` computes.

    `compute` maps the items of a batch, or of half a batch if GPU memory is too small, to a
    list of results. The batch size must not depend on the machine, because in bfloat16 the last
    bits depend on the items computed together. `progress` is called with the number of items of
    each finished batch.
    """
    results: dict[int, Any] = {}
    for number, start in enumerate(range(0, len(order), batch_size)):
        if number % work.n_shards != work.shard:
            continue
        batch = list(order[start : start + batch_size])
        computed = work.remember(number, partial(in_halves, compute, batch))
        results |= dict(zip(batch, computed, strict=True))
        if progress is not None:
            progress(len(batch))
    return results


def in_order(frame: pd.DataFrame, table: Table, question_ids: Sequence[str]) -> pd.DataFrame:
    """Sort `frame` by the key of `table`, questions in the order of `question_ids`.

    The order does not depend on the number of shards.
    """
    rank = {question_id: i for i, question_id in enumerate(question_ids)}
    order = frame[list(table.key)].assign(question_id=frame["question_id"].map(rank))
    return frame.iloc[order.reset_index(drop=True).sort_values(list(table.key)).index]

"""Work that is divided between threads: as many as OMP_NUM_THREADS says, or as processors."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MOST = 4  # threads: each can hold a copy of its weights
LARGE = 2**23  # numbers that are worth a thread

T = TypeVar("T")
R = TypeVar("R")


def n_threads() -> int:
    """Return how many threads may run."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    available = int(given) if given.isdigit() else os.cpu_count() or 1
    return max(1, min(MOST, available))


def in_threads(function: Callable[[T], R], items: Iterable[T], *, size: int) -> list[R]:
    """Return the value for each item, in order; `size` is how many numbers each one reads.

    Threads help where NumPy, SciPy and compiled loops release Python's lock.

    >>> in_threads(abs, [-1, 2], size=LARGE)
    [1, 2]
    """
    chosen = list(items)
    if size < LARGE or n_threads() == 1 or len(chosen) < 2:
        return list(map(function, chosen))
    with ThreadPoolExecutor(n_threads()) as pool:
        return list(pool.map(function, chosen))

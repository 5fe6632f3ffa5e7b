"""What a seed draws for a training, the order of its questions, and its learning rates."""

import math
from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray


def question_order(n: int, seed: int) -> NDArray[np.intp]:
    """Return in which order an epoch visits `n` questions."""
    return np.random.default_rng(seed).permutation(n)


def random_labels(n: int, checkpoint: str, seed: int) -> NDArray[np.float64]:
    """Return `n` fair coin flips, in the order of questions and their candidates."""
    flips = np.random.default_rng([seed, *checkpoint.encode()])
    return flips.integers(0, 2, n).astype(float)


def learning_rate(step: int, n_steps: int, peak: float) -> float:
    """Return the learning rate of step `step` of ``0 ... n_steps - 1``.

    Constant for the first 80 % of steps, then half a cosine from the peak, on the first
    of its steps, to 10 % of it, which would be that of a step after the last.

    Of ten steps the last two belong to the cosine, which is then at 1 and half way:

    >>> [round(learning_rate(step, 10, 1.0), 3) for step in (0, 7, 8, 9)]
    [1.0, 1.0, 1.0, 0.55]
    """
    constant = -(-4 * n_steps // 5)
    if step < constant:
        return peak
    decayed = (step - constant) / (n_steps - constant)
    return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * decayed)) / 2)


def question_batches(
    question_ids: Sequence[str],
    answered: Container[str],
    *,
    seed: int,
    epochs: int,
    batch_size: int,
) -> list[list[str]]:
    """Return the questions of every step, epoch after epoch.

    Epoch e visits all `question_ids`, in canonical order, in a shuffle that depends on
    ``seed + e`` alone, so that recipes and checkpoint sets see the same questions in the
    same order. Those that are not `answered` are left out after shuffling, which leaves the
    order of the rest as it was. The last batch of an epoch may be smaller.

    >>> ids = ["a", "b", "c", "d", "e"]
    >>> question_batches(ids, ids, seed=17, epochs=1, batch_size=2)
    [['e', 'a'], ['c', 'b'], ['d']]
    >>> question_batches(ids, {"a", "b", "c", "d"}, seed=17, epochs=1, batch_size=2)
    [['a', 'c'], ['b', 'd']]
    """
    batches = []
    for epoch in range(epochs):
        order = question_order(len(question_ids), seed + epoch)
        visited = [question_ids[i] for i in order if question_ids[i] in answered]
        batches += [
            visited[start : start + batch_size] for start in range(0, len(visited), batch_size)
        ]
    return batches

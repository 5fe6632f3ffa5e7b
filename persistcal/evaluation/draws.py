"""Paired, class-stratified bootstrap draws of questions, as multiplicities.

A replicate walks one sequence of questions drawn with replacement. Every
component (a checkpoint's answers, or a contrast set) takes from that same
sequence the first questions of either of its classes, as many as it has itself.
What it took is a vector of multiplicities over its questions.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# A question of a class is taken once per replicate on average, so 255 is never reached.
Counts = NDArray[np.uint8]


class Component(NamedTuple):
    """Questions in two classes, drawn together.

    Attributes
    ----------
    questions : int ndarray of shape (n,)
        Positions of the questions in the data, the first class before the second.
    n_first : int
        Size of the first class (correct; or improvement).
    """

    questions: NDArray[np.intp]
    n_first: int


def component(questions: NDArray[np.intp], first: NDArray[np.bool_]) -> Component:
    """Return the component of `questions`, of which `first` are in the first class."""
    return Component(np.concatenate([questions[first], questions[~first]]), int(first.sum()))


def question_blocks(n_questions: int, seed: int, replicate: int) -> Iterator[NDArray[np.int64]]:
    """Yield the endless sequence of questions of a replicate, a block at a time."""
    rng = np.random.default_rng([seed, replicate])
    while True:
        yield rng.integers(n_questions, size=n_questions + n_questions // 2 + 100)


def draw(
    components: Sequence[Component], n_questions: int, *, n_replicates: int, seed: int
) -> Counts:
    """Draw how often each replicate takes each question of each component.

    Parameters
    ----------
    components : sequence of Component
        They share the sequence of a replicate.
    n_questions : int
        Number of questions that the sequence is drawn from.
    n_replicates : int
        Number of replicates.
    seed : int
        Replicate b depends on (seed, b) alone.

    Returns
    -------
    uint8 ndarray of shape (sum of the components' n, n_replicates)
        Component after component, each in order of `Component.questions`. A
        class's rows sum to its size in every column.

    Examples
    --------
    >>> pair = Component(np.array([0, 2, 1]), n_first=2)
    >>> counts = draw([pair], 5, n_replicates=4, seed=0)
    >>> counts[:2].sum(axis=0).tolist(), counts[2].tolist()
    ([2, 2, 2, 2], [1, 1, 1, 1])
    """
    sizes = [len(part.questions) for part in components]
    stops = np.cumsum([0, *sizes])
    places = []  # of each question in the component, or its size where it is not in it
    for part, size in zip(components, sizes, strict=True):
        place = np.full(n_questions, size)
        place[part.questions] = np.arange(size)
        places.append(place)
    counts = np.empty((stops[-1], n_replicates), np.uint8)
    # rows are replicates until a block is full: writing columns one by one is slow
    block = np.empty((min(256, n_replicates), stops[-1]), np.uint8)
    for start in range(0, n_replicates, len(block)):
        n_rows = min(len(block), n_replicates - start)
        for row in range(n_rows):
            blocks = question_blocks(n_questions, seed, start + row)
            sequence = next(blocks)
            for index, (part, place) in enumerate(zip(components, places, strict=True)):
                while (taken := _take(part, place, sequence)) is None:
                    sequence = np.concatenate([sequence, next(blocks)])
                block[row, stops[index] : stops[index + 1]] = taken
        counts[:, start : start + n_rows] = block[:n_rows].T
    return counts


def by_component(counts: Counts, components: Sequence[Component]) -> list[Counts]:
    """Return the rows of each component, as views."""
    stops = np.cumsum([0, *(len(part.questions) for part in components)])
    return [counts[a:b] for a, b in pairwise(stops)]


def _take(
    part: Component, place: NDArray[np.intp], sequence: NDArray[np.int64]
) -> NDArray[np.intp] | None:
    """Count what the component takes of the sequence, or None if that is too short."""
    size = len(part.questions)
    n_second = size - part.n_first
    met = place.take(sequence)
    first = met.compress(met < part.n_first)[: part.n_first]
    second = met.compress((met >= part.n_first) & (met < size))[:n_second]
    if len(first) < part.n_first or len(second) < n_second:
        return None
    return np.bincount(np.concatenate([first, second]), minlength=size)

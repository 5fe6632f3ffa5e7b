"""Paired, class-stratified bootstrap draws of questions, as multiplicities.

A replicate is one sequence of questions, drawn with replacement. Every component
(a checkpoint's answers, or a contrast set) takes questions from the same sequence,
in order, until each of its two classes has its original size. The result is a
vector of multiplicities over the component's questions.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# A question of a class is taken once per replicate on average, so 255 is never reached.
Counts = NDArray[np.uint8]


class Component(NamedTuple):
    """Positions of questions of two classes; the first `n_first` are of the first class.

    The first class is the correct answers of a checkpoint, or the improvements of a contrast
    set.
    """

    questions: NDArray[np.intp]
    n_first: int


def component(questions: NDArray[np.intp], first: NDArray[np.bool_]) -> Component:
    """Return the component of `questions`, with the questions in `first` as first class."""
    return Component(np.concatenate([questions[first], questions[~first]]), int(first.sum()))


def _generator(seed: int, replicate: int) -> np.random.Generator:
    return np.random.default_rng([seed, replicate])


def question_blocks(n_questions: int, seed: int, replicate: int) -> Iterator[NDArray[np.int64]]:
    """Yield the endless sequence of questions of a replicate, a block at a time."""
    rng = _generator(seed, replicate)
    while True:
        yield rng.integers(n_questions, size=n_questions + n_questions // 2 + 100)


class Sequences(NamedTuple):
    """Random sequences of some replicates, shared by all components.

    A class of a component is complete near position n_questions of a sequence. So `counts` of
    shape (n_questions, n_replicates) counts the questions up to this position, and only the few
    questions `before` it (in reverse order) or `after` it, (n_replicates, reach), correct the
    counts.
    """

    seed: int
    replicates: range
    counts: Counts
    before: NDArray[np.unsignedinteger]
    after: NDArray[np.unsignedinteger]


def reach(parts: Sequence[Component], n_questions: int) -> int:
    """Return how far from its usual place a class gets full: eight standard deviations."""
    sizes = [n for part in parts for n in (part.n_first, len(part.questions) - part.n_first)]
    return min(n_questions, 100 + int(8 * n_questions / np.sqrt(max(1, min(sizes, default=1)))))


def draw_sequences(n_questions: int, replicates: range, *, seed: int, reach: int) -> Sequences:
    """Draw the sequences of questions of some replicates.

    Replicate b depends only on (seed, b). `reach` is the number of questions that are kept
    before and after position n_questions.
    """
    dtype = np.min_scalar_type(n_questions)
    counts = np.empty((n_questions, len(replicates)), np.uint8)
    lower = np.empty((len(replicates), reach), dtype)
    upper = np.empty((len(replicates), reach), dtype)
    # rows are replicates until a block is full: writing columns one by one is slow
    block = np.empty((min(64, len(replicates)), n_questions), np.uint8)
    for start in range(0, len(replicates), len(block)):
        chunk = replicates[start : start + len(block)]
        for row, replicate in enumerate(chunk):
            sequence = _generator(seed, replicate).integers(
                n_questions, size=n_questions + reach
            )
            block[row] = np.bincount(sequence[:n_questions], minlength=n_questions)
            lower[start + row] = sequence[n_questions - reach : n_questions][::-1]
            upper[start + row] = sequence[n_questions:]
        counts[:, start : start + len(chunk)] = block[: len(chunk)].T
    return Sequences(seed, replicates, counts, lower, upper)


def count_draws(part: Component, sequences: Sequences) -> Counts:
    """Count how often a component takes each question.

    Returns
    -------
    uint8 ndarray of shape (n, n_replicates)
        In order of `Component.questions`. A class's rows sum to its size in every column.

    Examples
    --------
    >>> pair = Component(np.array([0, 2, 1]), n_first=2)
    >>> counts = count_draws(pair, draw_sequences(5, range(4), seed=0, reach=5))
    >>> counts[:2].sum(axis=0).tolist(), counts[2].tolist()
    ([2, 2, 2, 2], [1, 1, 1, 1])
    """
    from persistcal.evaluation.loops import settle

    counts = sequences.counts[part.questions]
    short = np.zeros(counts.shape[1], bool)
    for rows in (slice(part.n_first), slice(part.n_first, None)):
        place = np.full(len(sequences.counts), -1)
        place[part.questions[rows]] = np.arange(len(part.questions[rows]))
        # remove surplus questions from the end, add missing ones from the following part
        surplus = counts[rows].sum(axis=0, dtype=int) - len(counts[rows])
        short |= settle(counts[rows], place, sequences.before, surplus, -1)
        short |= settle(counts[rows], place, sequences.after, -surplus, 1)
    for column in np.flatnonzero(short):
        counts[:, column] = _walk(
            part, len(sequences.counts), sequences.seed, sequences.replicates[column]
        )
    return counts


def _walk(part: Component, n_questions: int, seed: int, replicate: int) -> NDArray[np.intp]:
    """Count the questions that the component takes, from the start of the sequence."""
    size, n_second = len(part.questions), len(part.questions) - part.n_first
    place = np.full(n_questions, size)
    place[part.questions] = np.arange(size)
    met = np.empty(0, int)
    for block in question_blocks(n_questions, seed, replicate):
        met = np.concatenate([met, place[block]])
        first = met[met < part.n_first][: part.n_first]
        second = met[(met >= part.n_first) & (met < size)][:n_second]
        if len(first) == part.n_first and len(second) == n_second:
            break
    return np.bincount(np.concatenate([first, second]), minlength=size)

r"""Draws of questions for a bootstrap: counts, and weights of gained and lost questions.

Counts say how often a replicate draws each question, whatever the labels. `Sequences` keep the
order of the draws, too, which the class-stratified bootstrap of `paper_draws` follows.

The lost questions determine half of Δ₀ᵇ. A bootstrap that keeps the class sizes never varies a
single lost question and varies a few too little, so its intervals are too narrow. Metrics that
need both gained and lost questions have weights instead, from a Bayesian bootstrap [1]_ with
pseudo-questions:

- Each question has a weight from the exponential distribution. Pairs of checkpoints, estimators
  and seeds share the weights, so that differences stay paired.
- Each direction has two pseudo-questions with weights from Gamma(1/2): in one the confidence
  follows the change by the largest possible amount, in the other it moves against the change by
  the same amount. For signs without ties and one pair this is Jeffreys' interval of the share
  of each direction [2]_. Each estimator has separate weights, which depend on its confidences
  and the seed. Its training seeds and all pairs share the weights.
- The mean over n questions of a direction is spread by :math:`\sqrt{(n + 2) / n}` about its
  centre, because the pseudo-questions reduce its variance to the variance over n + 2 questions.

The largest possible sign is 1; the largest possible gap is the largest gap in the contrast set.
For the change AUC the pseudo-questions have changes of ±∞ and weights from Gamma(1/4), because
both directions act on one number. The change AUC is not spread. docs/validation.md shows how
often the intervals contain the truth.

References
----------
.. [1] Rubin, "The Bayesian Bootstrap", The Annals of Statistics 1981.
.. [2] Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", Statistical
   Science 2001.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.weighted import by_direction, count_wins, in_threads

# A question is drawn once per replicate on average, so 255 is never reached.
Counts = NDArray[np.uint8]
PSEUDO = 0.5  # expected weight of a pseudo-question of a mean; a question has 1
PSEUDO_AUC = PSEUDO / 2  # expected weight of a pseudo-question of the change AUC
AT_ONCE = 64  # replicates
POOL = 4  # words of 32 bits that NumPy mixes seeds in
Words = NDArray[np.uint32]
KEPT = 100_000_000  # bytes of draws that are kept for the next caller


@dataclass(eq=False)
class Component:
    """Positions of questions of two classes; the first `n_first` are of the first class.

    The first class is the correct answers of a checkpoint, or the improvements of a contrast
    set. `size` is the number of questions of both classes.
    """

    questions: NDArray[np.intp]
    n_first: int

    def __post_init__(self) -> None:
        """Count the questions of the second class, and tell both classes apart."""
        self.size = len(self.questions)
        self.n_second = self.size - self.n_first
        self.is_first = np.arange(self.size) < self.n_first


class Pseudo(NamedTuple):
    """Weights of pseudo-questions, (4, n_columns) or (4, n_runs, n_columns).

    `sizes` are the mean sizes of groups of gained and of lost questions. `among` is the number
    of weights of questions in all columns, if these are some of many.
    """

    weights: Array
    sizes: tuple[float, float]
    among: int = 0


def question_blocks(n_questions: int, seed: int, replicate: int) -> Iterator[NDArray[np.int64]]:
    """Yield the endless sequence of questions of a replicate, a block at a time."""
    rng = np.random.default_rng([seed, replicate])
    while True:
        yield rng.integers(n_questions, size=n_questions + n_questions // 2 + 100)


class _Known(ISeedSequence):
    def __init__(self, state: NDArray[np.uint64]) -> None:
        self._state = state

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray:
        return self._state


def generators(seed: int, replicates: range, *further: int) -> Iterator[np.random.Generator]:
    """Yield `default_rng([seed, replicate, *further])` of each replicate.

    It takes a sixth of the time, because the states are computed together, in the way of
    `numpy.random.SeedSequence`.

    >>> [rng] = generators(17, range(5, 6))
    >>> bool(rng.random() == np.random.default_rng([17, 5]).random())
    True
    """
    n = len(replicates)
    words = [seed >> bit & 2**32 - 1 for bit in range(0, max(1, seed.bit_length()), 32)]
    entropy = [*words, np.arange(replicates.start, replicates.stop), *further]
    parts = [np.broadcast_to(np.asarray(part, np.uint32), n) for part in entropy]
    factor, multiplier = 0x43B0D7E5, 0x931E8875

    def scramble(value: Words) -> Words:
        nonlocal factor
        value = value ^ np.uint32(factor)
        factor = factor * multiplier % 2**32
        value = value * np.uint32(factor)
        return value ^ value >> np.uint32(16)

    def mix(first: Words, second: Words) -> Words:
        value = first * np.uint32(0xCA01F9DD) - second * np.uint32(0x4973F715)
        return value ^ value >> np.uint32(16)

    nothing = [np.zeros(n, np.uint32)] * POOL
    pool = [scramble(part) for part in [*parts, *nothing][:POOL]]
    for source, i in permutations(range(POOL), 2):
        pool[i] = mix(pool[i], scramble(pool[source]))
    for part, i in product(parts[POOL:], range(POOL)):
        pool[i] = mix(pool[i], scramble(part))
    factor, multiplier = 0x8B51F9DD, 0x58F38DED
    states = np.stack([scramble(pool[i % POOL]) for i in range(2 * POOL)], axis=1)
    known: Iterator[Any] = map(_Known, states.view(np.uint64))
    yield from (np.random.Generator(np.random.PCG64(state)) for state in known)


class Sequences(NamedTuple):
    """Random sequences of some replicates, shared by all components.

    `counts`, (n_questions, n_replicates), counts the first n_questions draws. `before` and
    `after` them, (n_replicates, window), are the nearest draws on either side of this position,
    nearest first.
    """

    seed: int
    replicates: range
    counts: Counts
    before: NDArray[np.unsignedinteger]
    after: NDArray[np.unsignedinteger]


def draw_sequences(
    n_questions: int, replicates: range, *, seed: int, window: int = 0
) -> Sequences:
    """Draw the sequences of questions of some replicates.

    Replicate b depends only on (seed, b). `window` is the number of draws that are kept before
    and after position n_questions.
    """
    counts = np.empty((n_questions, len(replicates)), np.uint8)
    before, after = np.empty((2, len(replicates), window), np.min_scalar_type(n_questions))

    def draw(start: int) -> None:
        # rows are replicates until a block is full: writing columns one by one is slow
        chunk = replicates[start : start + AT_ONCE]
        block = np.zeros((len(chunk), n_questions), np.uint8)
        for row, rng in enumerate(generators(seed, chunk)):
            sequence = rng.integers(n_questions, size=n_questions + window, dtype=np.uint32)
            np.add.at(block[row], sequence[:n_questions], np.uint8(1))
            before[start + row] = sequence[n_questions - window : n_questions][::-1]
            after[start + row] = sequence[n_questions:]
        counts[:, start : start + len(chunk)] = block.T

    in_threads(draw, range(0, len(replicates), AT_ONCE), size=AT_ONCE * n_questions)
    return Sequences(seed, replicates, counts, before, after)


_draw_once = lru_cache(maxsize=1)(draw_sequences)


def draw_counts(n_questions: int, among: int, replicates: range, *, seed: int) -> Counts:
    """Count how often some of `among` replicates draw each question."""
    if n_questions * among > KEPT:
        return draw_sequences(n_questions, replicates, seed=seed).counts
    every = _draw_once(n_questions, range(among), seed=seed).counts
    return every[:, replicates.start : replicates.stop]


def question_weights(
    groups: NDArray[np.intp],
    kept: NDArray[np.intp],
    replicates: range,
    *,
    seed: int,
    among: int = 0,
) -> Array:
    """Draw the weights of `kept`, some of all questions: (n_kept, n_replicates).

    Questions with the same number in `groups`, (n_questions,), have the same weight. The
    weights of replicate b depend only on (seed, b). If they are some of `among` replicates, all
    are drawn once, where they fit.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    if 0 < 8 * n_groups * among <= KEPT:
        every = _every_weight(n_groups, among, seed)
        return every[groups[kept], replicates.start : replicates.stop]
    return _draw_weights(groups[kept], replicates, seed)


@lru_cache(maxsize=1)
def _every_weight(n_groups: int, n_replicates: int, seed: int) -> Array:
    return _draw_weights(np.arange(n_groups), range(n_replicates), seed)


def _draw_weights(chosen: NDArray[np.intp], replicates: range, seed: int) -> Array:
    n_drawn = int(chosen.max(initial=-1)) + 1  # later ones change no weight
    drawn = np.empty((len(chosen), len(replicates)))

    def draw(start: int) -> None:
        chunk = replicates[start : start + AT_ONCE]
        block = np.empty((len(chunk), len(chosen)))
        for row, rng in enumerate(generators(seed, chunk, 1)):
            block[row] = rng.standard_exponential(n_drawn)[chosen]
        drawn[:, start : start + len(chunk)] = block.T

    in_threads(draw, range(0, len(replicates), AT_ONCE), size=AT_ONCE * n_drawn)
    return drawn


def count_groups(part: Component, groups: NDArray[np.intp]) -> tuple[int, int]:
    """Return the number of groups with a question of each class of a component."""
    question_groups = groups[part.questions]
    n_first, n_second = (
        len(np.unique(question_groups[rows])) for rows in (part.is_first, ~part.is_first)
    )
    return n_first, n_second


def effective_groups(questions: NDArray[np.intp], groups: NDArray[np.intp]) -> float:
    """Return the number of groups of questions; fewer count if their sizes differ.

    >>> effective_groups(np.arange(4), np.array([0, 0, 1, 1]))
    2.0
    >>> round(effective_groups(np.arange(12), np.repeat([0, 1, 2], [10, 1, 1])), 2)
    1.41
    """
    sizes = np.bincount(groups[questions]).astype(float)
    return float(sizes.sum() ** 2 / max(1.0, (sizes**2).sum()))


def group_sizes(part: Component, groups: NDArray[np.intp]) -> tuple[float, float]:
    """Return the mean number of questions of a group, in each class of a component.

    >>> group_sizes(Component(np.arange(5), n_first=4), np.array([0, 0, 1, 1, 2]))
    (2.0, 1.0)
    """
    n_first, n_second = count_groups(part, groups)
    return part.n_first / max(1, n_first), part.n_second / max(1, n_second)


def pseudo_weights(
    key: Sequence[bytes], n_replicates: int, *, seed: int, expected: float
) -> Array:
    """Draw the weights of pseudo-questions: (4, n_replicates).

    The rows are gained questions with and against the change, then lost questions with and
    against it. Their expected value is `expected`, see `Metric.pseudo`. The weights depend
    on `key`, the content of the estimator and the contrast sets.
    """
    digest = hashlib.sha256(b"\n".join(key)).digest()
    rng = np.random.default_rng([seed, 2, *digest[:16]])
    return rng.standard_gamma(expected, (4, n_replicates))


def balanced_replicates(
    values: Array,
    improvement: Mask,
    weights: Array,
    pseudo: Array,
    sizes: tuple[float, float] = (1.0, 1.0),
) -> Array:
    """Replicate the mean over gained questions averaged with the mean over lost ones.

    `values`, (n_runs, n_questions), are signs or gaps in [−1, 1], positive if the confidence
    follows the change. `improvement` is True for gained questions. `weights`, (n_questions,
    n_replicates), belong to questions, and `pseudo`, (4, n_replicates) or, for each run,
    (4, n_runs, n_replicates), are from `pseudo_weights`. `sizes` are mean sizes of groups, see
    `group_sizes`: a pseudo-question weighs as half a group. The result has the shape (n_runs,
    n_replicates).
    """
    means = direction_replicates(values, improvement, weights, pseudo, sizes)
    return np.asarray(sum(means)) / 2


def direction_replicates(
    values: Array,
    improvement: Mask,
    weights: Array,
    pseudo: Array,
    sizes: tuple[float, float] = (1.0, 1.0),
) -> list[Array]:
    """Replicate the means over gained and over lost questions, see `balanced_replicates`."""
    extent = np.abs(values).max(axis=1, keepdims=True)
    means = []
    directions = zip(by_direction(improvement), (pseudo[:2], pseudo[2:]), sizes, strict=True)
    for rows, (favourable, contrary), size in directions:
        of_rows = values[:, rows]
        n = of_rows.shape[1] / size
        sums = np.concatenate([of_rows, np.ones((1, of_rows.shape[1]))]) @ weights[rows] / size
        mean = sums[:-1] + extent * (favourable - contrary)
        mean /= sums[-1] + favourable + contrary
        centre = of_rows.sum(axis=1, keepdims=True) / size / (n + 2 * PSEUDO)
        means.append(np.clip(centre + np.sqrt((n + 2) / n) * (mean - centre), -1, 1))
    return means


def direction_means(
    values: Array, improvement: Mask, weights: Array, pseudo: Pseudo | None
) -> list[Array]:
    """Return a run's weighted means over gained and over lost questions, (n_replicates,)."""
    if pseudo is None:
        return [
            values[rows] @ weights[rows] / weights[rows].sum(axis=0)
            for rows in (improvement, ~improvement)
        ]
    means = direction_replicates(values[None], improvement, weights, *pseudo[:2])
    return [of_run for [of_run] in means]


def change_auc_replicates(
    change: Array,
    improvement: Mask,
    weights: Array,
    pseudo: Array,
    sizes: tuple[float, float] = (1.0, 1.0),
    among: int = 0,
) -> Array:
    """Replicate the AUC with which changes separate gained from lost: (n_replicates,).

    `change` of shape (n_questions,) belongs to one run; see `balanced_replicates` and `Pseudo`
    for the other parameters.
    """
    won, gained, lost = count_wins(change, improvement, weights, among=among)
    won, gained, lost = won / sizes[0] / sizes[1], gained / sizes[0], lost / sizes[1]
    up, down, lost_down, lost_up = pseudo
    won += (
        up * lost + gained * lost_down + up * lost_down + (up * lost_up + down * lost_down) / 2
    )
    return won / ((gained + up + down) * (lost + lost_down + lost_up))

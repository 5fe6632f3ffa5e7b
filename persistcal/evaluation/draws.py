r"""Bootstrap draws of questions: multiplicities, and weights of gained and lost questions.

Draws are paired and class-stratified. A replicate is one sequence of questions, drawn with
replacement. Every component (a checkpoint's answers, or a contrast set) takes questions from
the same sequence, in order, until each of its two classes has its original size. The result is
a vector of multiplicities over the component's questions.

The lost questions determine half of Δ₀ᵇ. A bootstrap that keeps the class sizes never varies a
single lost question and varies a few too little, so its intervals are too narrow. Metrics that
need both gained and lost questions have weights instead, from a Bayesian bootstrap [1]_ with
pseudo-questions:

- Each question has a weight from the exponential distribution. Pairs of checkpoints, estimators
  and seeds share the weights, so that differences stay paired.
- Each direction has two pseudo-questions with weights from Gamma(1/2): in one the confidence
  follows the change by the largest possible amount, in the other it moves against the change by
  the same amount. For signs without ties and one pair this is Jeffreys' interval of the share
  of each direction [2]_. Each estimator has separate weights, which depend on its name and the
  seed. Its training seeds and all pairs share the weights.
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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.threads import in_threads
from persistcal.evaluation.weighted import SMALL, auc, by_direction

# A question of a class is taken once per replicate on average, so 255 is never reached.
Counts = NDArray[np.uint8]
PSEUDO = 0.5  # expected weight of a pseudo-question of a mean; a question has 1
PSEUDO_AUC = PSEUDO / 2  # expected weight of a pseudo-question of the change AUC
AT_ONCE = 64  # replicates
SETTLED_AT_ONCE = 64  # questions; hardly any class needs more to get full


class Component(NamedTuple):
    """Positions of questions of two classes; the first `n_first` are of the first class.

    The first class is the correct answers of a checkpoint, or the improvements of a contrast
    set.
    """

    questions: NDArray[np.intp]
    n_first: int

    @property
    def size(self) -> int:
        """Number of questions of both classes."""
        return len(self.questions)

    @property
    def n_second(self) -> int:
        """Number of questions of the second class."""
        return len(self.questions) - self.n_first

    @property
    def is_first(self) -> Mask:
        """Whether each question is of the first class."""
        return np.arange(self.size) < self.n_first


def component(questions: NDArray[np.intp], first: Mask) -> Component:
    """Return the component of `questions`, with the questions in `first` as first class."""
    return Component(np.concatenate([questions[first], questions[~first]]), int(first.sum()))


def question_blocks(n_questions: int, seed: int, replicate: int) -> Iterator[NDArray[np.int64]]:
    """Yield the endless sequence of questions of a replicate, a block at a time."""
    rng = np.random.default_rng([seed, replicate])
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
    sizes = [n for part in parts for n in (part.n_first, part.n_second)]
    return min(n_questions, 100 + int(8 * n_questions / np.sqrt(max(1, min(sizes, default=1)))))


def draw_sequences(n_questions: int, replicates: range, *, seed: int, reach: int) -> Sequences:
    """Draw the sequences of questions of some replicates.

    Replicate b depends only on (seed, b). `reach` is the number of questions that are kept
    before and after position n_questions.
    """
    counts = np.empty((n_questions, len(replicates)), np.uint8)
    before, after = np.empty((2, len(replicates), reach), np.min_scalar_type(n_questions))
    count = _tally if n_questions * len(replicates) <= SMALL else _tally_many

    def draw(start: int) -> None:
        # rows are replicates until a block is full: writing columns one by one is slow
        chunk = replicates[start : start + AT_ONCE]
        block = np.zeros((len(chunk), n_questions), np.uint8)
        for row, replicate in enumerate(chunk):
            rng = np.random.default_rng([seed, replicate])
            sequence = rng.integers(n_questions, size=n_questions + reach, dtype=np.uint32)
            count(sequence[:n_questions], block[row])
            before[start + row] = sequence[n_questions - reach : n_questions][::-1]
            after[start + row] = sequence[n_questions:]
        counts[:, start : start + len(chunk)] = block.T

    in_threads(draw, range(0, len(replicates), AT_ONCE), size=AT_ONCE * n_questions)
    return Sequences(seed, replicates, counts, before, after)


def _tally(drawn: NDArray[np.uint32], counts: Counts) -> None:
    counts += np.bincount(drawn, minlength=len(counts)).astype(np.uint8)


def _tally_many(drawn: NDArray[np.uint32], counts: Counts) -> None:
    from persistcal.evaluation.loops import tally

    tally(drawn, counts)


def count_draws(part: Component, sequences: Sequences) -> Counts:
    """Count how often a component takes each question: (n_questions, n_replicates).

    A class's rows sum to its size in every column.

    >>> pair = Component(np.array([0, 2, 1]), n_first=2)
    >>> counts = count_draws(pair, draw_sequences(5, range(4), seed=0, reach=5))
    >>> counts[:2].sum(axis=0).tolist(), counts[2].tolist()
    ([2, 2, 2, 2], [1, 1, 1, 1])
    """
    counts = sequences.counts[part.questions]
    short = np.zeros(counts.shape[1], bool)
    for rows in (slice(part.n_first), slice(part.n_first, None)):
        row_of = np.full(len(sequences.counts), -1)
        row_of[part.questions[rows]] = np.arange(len(part.questions[rows]))
        # remove surplus questions from the end, add missing ones from the following part
        surplus = counts[rows].sum(axis=0, dtype=int) - len(counts[rows])
        short |= _settle(counts[rows], row_of, sequences.before, surplus, -1)
        short |= _settle(counts[rows], row_of, sequences.after, -surplus, 1)
    for column in np.flatnonzero(short):
        counts[:, column] = _walk(part, sequences, sequences.replicates[column])
    return counts


def _settle(
    counts: Counts,
    row_of: NDArray[np.intp],
    nearby: NDArray[np.unsignedinteger],
    missing: NDArray[np.intp],
    change: int,
) -> Mask:
    """Add `change` to the counts of a class's questions, in order, until none is missing.

    `counts`, (n, n_columns), is modified in place. `place` is the row of each question, -1
    outside the class. `nearby`, (n_columns, reach), contains the questions in order, and
    `missing` the number to take, if positive. Returns True for columns with too few questions.
    """
    left = missing.copy()
    columns = np.flatnonzero(left > 0)
    for start in range(0, nearby.shape[1], SETTLED_AT_ONCE):
        rows = row_of[nearby[columns, start : start + SETTLED_AT_ONCE]]
        is_taken = rows >= 0
        is_taken &= np.cumsum(is_taken, axis=1) <= left[columns, None]
        taken = columns[np.nonzero(is_taken)[0]]
        np.add.at(counts, (rows[is_taken], taken), np.int8(change).astype(counts.dtype))
        left[columns] -= is_taken.sum(axis=1)
        columns = columns[left[columns] > 0]
        if not columns.size:
            break
    return left > 0


def _walk(part: Component, sequences: Sequences, replicate: int) -> NDArray[np.intp]:
    """Count the questions that the component takes, from the start of the sequence."""
    n_questions = len(sequences.counts)
    row_of = np.full(n_questions, part.size)
    row_of[part.questions] = np.arange(part.size)
    met = np.empty(0, int)
    for block in question_blocks(n_questions, sequences.seed, replicate):
        met = np.concatenate([met, row_of[block]])
        first = met[met < part.n_first][: part.n_first]
        second = met[(met >= part.n_first) & (met < part.size)][: part.n_second]
        if len(first) + len(second) == part.size:
            break
    return np.bincount(np.concatenate([first, second]), minlength=part.size)


def question_weights(
    groups: NDArray[np.intp], kept: NDArray[np.intp], replicates: range, *, seed: int
) -> Array:
    """Draw the weights of `kept`, some of all questions: (n_kept, n_replicates).

    Questions with the same number in `groups`, (n_questions,), have the same weight. The
    weights of replicate b depend only on (seed, b).
    """
    chosen = groups[kept]
    n_drawn = int(chosen.max(initial=-1)) + 1  # later ones change no weight
    drawn = np.empty((len(kept), len(replicates)))

    def draw(start: int) -> None:
        chunk = replicates[start : start + AT_ONCE]
        block = np.empty((len(chunk), len(kept)))
        for row, replicate in enumerate(chunk):
            rng = np.random.default_rng([seed, replicate, 1])
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


def group_sizes(part: Component, groups: NDArray[np.intp]) -> tuple[float, float]:
    """Return the mean number of questions of a group, in each class of a component.

    >>> group_sizes(Component(np.arange(5), n_first=4), np.array([0, 0, 1, 1, 2]))
    (2.0, 1.0)
    """
    n_first, n_second = count_groups(part, groups)
    return part.n_first / max(1, n_first), part.n_second / max(1, n_second)


def pseudo_weights(
    names: Sequence[str], n_replicates: int, *, seed: int, expected: float
) -> Array:
    """Draw the weights of pseudo-questions: (4, n_replicates).

    The rows are gained questions with and against the change, then lost questions with and
    against it. Their expected value is `expected`, see `Metric.pseudo`. The weights depend
    on `names`, the names of the estimator and the contrast sets.
    """
    digest = hashlib.sha256("\n".join(names).encode()).digest()
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


def change_auc_replicates(
    change: Array,
    improvement: Mask,
    weights: Array,
    pseudo: Array,
    sizes: tuple[float, float] = (1.0, 1.0),
) -> Array:
    """Replicate the AUC with which changes separate gained from lost: (n_replicates,).

    `change` of shape (n_questions,) belongs to one run; see `balanced_replicates` for the other
    parameters.
    """
    gained, lost = (
        weights[rows].sum(axis=0) / size
        for rows, size in zip(by_direction(improvement), sizes, strict=True)
    )
    up, down, lost_down, lost_up = pseudo
    won = auc(change, improvement, weights=weights) * gained * lost
    won += (
        up * lost + gained * lost_down + up * lost_down + (up * lost_up + down * lost_down) / 2
    )
    return won / ((gained + up + down) * (lost + lost_down + lost_up))

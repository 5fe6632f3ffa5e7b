"""The paper's bootstrap: class-stratified draws. Only the marks of the paper's tables use it.

A replicate is one sequence of questions, drawn with replacement. Every component (a
checkpoint's answers, or a contrast set) takes questions from the same sequence, in order, until
both classes have the original size. Therefore replicates are paired, and never vary the
numbers of correct answers, of gained and of lost questions. The result is a vector of
multiplicities over the component's questions.

A class is complete near position n_questions of a sequence, so counts up to this position are
corrected by the few draws around it.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.bootstrap import UNFINISHED, Step, blocks
from persistcal.evaluation.draws import (
    Component,
    Counts,
    Sequences,
    draw_sequences,
    question_blocks,
)
from persistcal.evaluation.evaluate import mean_over_seeds, metrics_under
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.settings import EvaluationSettings

SETTLED_AT_ONCE = 64  # questions; hardly any class needs more to get full


def stratified_draws(
    data: Aligned, settings: EvaluationSettings, step: Step = lambda _: None
) -> dict[MetricKey, Array]:
    """Return replicates of the metrics of each estimator, (n_estimators, n_replicates)."""
    answers, n_questions = data.answers, len(data.answers.questions)
    parts = [*data.parts, *(pair.part for pair in data.kept)]
    nearby = window(parts, n_questions)
    largest = max(part.size for part in parts)
    n_answers = sum(part.size for part in data.parts)
    n_bytes = 2 * nearby * np.min_scalar_type(n_questions).itemsize
    n_bytes += n_questions + n_answers + 2 * largest + 2_000
    drawn: dict[MetricKey, Array] = {}
    for block in blocks(settings.n_replicates, n_bytes):
        sequences = draw_sequences(n_questions, block, seed=settings.seed, window=nearby)
        counts_of = partial(count_draws, sequences=sequences)
        for key, of_runs in metrics_under(counts_of, data, settings.conditionings).items():
            empty = np.empty((len(answers.rows), settings.n_replicates))
            of_key = drawn.setdefault(key, empty)
            of_key[:, block.start : block.stop] = mean_over_seeds(of_runs, answers)
        step(f"{block.stop:,} of {settings.n_replicates:,} replicates{UNFINISHED}")
    return drawn


def window(parts: Sequence[Component], n_questions: int) -> int:
    """Return how many draws around its usual place fill a class: eight standard deviations."""
    sizes = [n for part in parts for n in (part.n_first, part.n_second)]
    return min(n_questions, 100 + int(8 * n_questions / np.sqrt(max(1, min(sizes, default=1)))))


def count_draws(part: Component, sequences: Sequences) -> Counts:
    """Count how often a component takes each question: (n_questions, n_replicates).

    A class's rows sum to its size in every column.

    >>> pair = Component(np.array([0, 2, 1]), n_first=2)
    >>> counts = count_draws(pair, draw_sequences(5, range(4), seed=0, window=5))
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
    outside the class. `nearby`, (n_columns, window), contains the questions in order, and
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

"""Metrics of states, a checkpoint on some questions each, on the same bootstrap replicates.

All states walk one sequence of questions, see `persistcal.evaluation.draws`. For the metrics of
estimators each keeps the size of its classes; for accuracies, which that would freeze, the
questions are drawn freely.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from persistcal.evaluation.arrange import ABSENT, AnswerArrays
from persistcal.evaluation.draws import Sequences, component, draw_sequences, reach, take
from persistcal.evaluation.measures import names
from persistcal.evaluation.metrics import Array, mean_gap
from persistcal.evaluation.prepared import once
from persistcal.evaluation.replicates import LARGEST_BLOCK, MEMORY
from persistcal.evaluation.scopes import FULL_METRICS, FullSet, compute

ACCURACY = "accuracy"
MEAN = "mean"  # over seeds
Kind = tuple[str, str, str, str]  # train_dataset, estimator, metric and seed


class State(NamedTuple):
    """A checkpoint on some of the questions that it answered: their positions, ascending."""

    checkpoint: int
    questions: tuple[int, ...]


class Resampled(NamedTuple):
    """A metric of states on the data, (n_states,), and on replicates, (n_states, n)."""

    observed: Array
    replicated: Array


def shared(answers: AnswerArrays, checkpoints: Iterable[int]) -> tuple[int, ...]:
    """Return the positions of the questions that all `checkpoints` answered."""
    answered = (answers.correct[list(checkpoints)] != ABSENT).all(axis=0)
    return tuple(np.flatnonzero(answered).tolist())


def resample_states(
    answers: AnswerArrays, states: Sequence[State], *, n_replicates: int, seed: int
) -> dict[Kind, Resampled]:
    """Evaluate states on the same bootstrap replicates.

    Returns
    -------
    dict of (train_dataset, estimator, metric, seed) to Resampled
        The full-set metrics of each series and, with seed "mean", their means over seeds; and
        with an empty estimator the accuracy, whose questions are drawn freely.
    """
    n_questions = len(answers.questions)
    series = list(answers.confidence)
    parts = [
        component(np.array(s.questions), answers.correct[s.checkpoint, list(s.questions)] == 1)
        for s in states
    ]
    runs = [
        [
            FullSet(run[state.checkpoint, part.questions], right, [slice(0, len(right))])
            for run in answers.confidence.values()
        ]
        for state, part in zip(states, parts, strict=True)
        for right in [np.arange(len(part.questions)) < part.n_first]
    ]
    shape = (len(states), n_replicates + 1)  # the data are in the first column
    values = {(name, i): np.empty(shape) for name in FULL_METRICS for i in range(len(series))}
    accuracy = np.empty(shape)
    far = reach(parts, n_questions)
    size = max(1, min(LARGEST_BLOCK, MEMORY // (4 * n_questions + 10_000)))
    starts = [*range(0, n_replicates, size)]
    for block in [None, *(range(s, min(s + size, n_replicates)) for s in starts)]:
        columns = slice(0, 1) if block is None else slice(block.start + 1, block.stop + 1)
        drawn = (
            None if block is None else draw_sequences(n_questions, block, seed=seed, reach=far)
        )
        for row, (state, part) in enumerate(zip(states, parts, strict=True)):
            accuracy[row, columns] = _accuracy(answers, state, drawn)
            if series:
                counts = once(part) if drawn is None else take(part, drawn)
                for name, of_runs in compute(FULL_METRICS, runs[row], counts).items():
                    for i, of_run in enumerate(of_runs):
                        values[name, i][row, columns] = of_run
    made = {("", "", ACCURACY, ""): Resampled(accuracy[:, 0], accuracy[:, 1:])}
    for member in answers.estimators:
        own = [i for i, one in enumerate(series) if one[:2] == member]
        for name in names("full"):
            by_seed = {str(series[i].seed): values[name, i] for i in own}
            by_seed[MEAN] = np.mean([values[name, i] for i in own], axis=0)
            for number, one in by_seed.items():
                made[(*member, name, number)] = Resampled(one[:, 0], one[:, 1:])
    return made


def _accuracy(answers: AnswerArrays, state: State, drawn: Sequences | None) -> Array:
    """Accuracy on as many questions, drawn from all, as there are; NaN where none is drawn."""
    chosen = list(state.questions)
    right = answers.correct[state.checkpoint, chosen] == 1
    weights = np.ones((len(chosen), 1)) if drawn is None else drawn.counts[chosen]
    return np.asarray(mean_gap(right.astype(float), weights=weights))

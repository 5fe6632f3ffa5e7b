"""Checkpoints against each other, and differences of proportions with their intervals."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.contrast import Pairs, choose_pairs
from persistcal.evaluation.draws import draw_sequences
from persistcal.evaluation.metrics import (
    FULL_METRICS,
    MEASURES,
    Array,
    FullSet,
    compute,
    mean_gap,
    names,
)
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, arrange, shared_by_models
from persistcal.evaluation.proportions import compare_accuracies, compare_replicates
from persistcal.evaluation.replicates import LARGEST_BLOCK, MEMORY
from persistcal.evaluation.significance import holm

log = logging.getLogger(__name__)

KEY = ["train_dataset", "estimator", "metric", "seed"]

ENDS = ["lower_2_5pct", "upper_97_5pct", "p_value"]

STATES = ["earlier", "later", *KEY, "earlier_value", "later_value", "difference", *ENDS]

TRENDS = [*KEY, "n_checkpoints", "slope", *ENDS]

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

    The full-set metrics of each series that all states have and, with seed "mean", each state's
    mean over its own seeds; and with an empty estimator the accuracy. A metric is NaN in a
    replicate that lacks a class.
    """
    n_questions = len(answers.questions)
    series = list(answers.confidence)
    questions = [list(state.questions) for state in states]
    labels = [
        answers.correct[state.checkpoint, chosen] == 1
        for state, chosen in zip(states, questions, strict=True)
    ]
    has = [
        [
            number
            for number, run in enumerate(answers.confidence.values())
            if not np.isnan(run[state.checkpoint, chosen]).any()
        ]
        for state, chosen in zip(states, questions, strict=True)
    ]
    runs = [
        [
            FullSet(answers.confidence[series[i]][state.checkpoint, chosen], right, whole)
            for i in present
        ]
        for state, chosen, right, present in zip(states, questions, labels, has, strict=True)
        for whole in [[slice(0, len(right))]]
    ]
    shape = (len(states), n_replicates + 1)  # the data are in the first column
    values = {(name, i): np.empty(shape) for name in FULL_METRICS for i in range(len(series))}
    accuracy = np.empty(shape)
    size = max(1, min(LARGEST_BLOCK, MEMORY // (4 * n_questions + 10_000)))
    starts = [*range(0, n_replicates, size)]
    for block in [None, *(range(s, min(s + size, n_replicates)) for s in starts)]:
        columns = slice(0, 1) if block is None else slice(block.start + 1, block.stop + 1)
        drawn = (
            np.ones((n_questions, 1), np.uint8)
            if block is None
            else draw_sequences(n_questions, block, seed=seed, reach=0).counts
        )
        for row, (chosen, right) in enumerate(zip(questions, labels, strict=True)):
            counts = drawn[chosen]
            accuracy[row, columns] = mean_gap(right.astype(float), weights=counts)
            if series:
                for name, of_runs in compute(FULL_METRICS, runs[row], counts).items():
                    for i, of_run in zip(has[row], of_runs, strict=True):
                        values[name, i][row, columns] = of_run
    made = {("", "", ACCURACY, ""): Resampled(accuracy[:, 0], accuracy[:, 1:])}
    for member, rows_of_series in answers.rows.items():
        for name in names("full"):
            everywhere = [i for i in rows_of_series if all(i in present for present in has)]
            by_seed = {str(series[i].seed): values[name, i] for i in everywhere}
            by_seed[MEAN] = np.empty(shape)
            for row, present in enumerate(has):
                runs_there = [values[name, i][row] for i in rows_of_series if i in present]
                by_seed[MEAN][row] = np.mean(runs_there, axis=0)
            for number, seed_values in by_seed.items():
                made[(*member, name, number)] = Resampled(seed_values[:, 0], seed_values[:, 1:])
    return made


def compare_checkpoints(
    answers: AnswerArrays, pairs: Sequence[tuple[int, int]], *, n_replicates: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare pairs of checkpoints, by position, and follow each metric along the order of all.

    The first table has the columns `STATES`, on the questions that both checkpoints answered; a
    difference is later − earlier. A pair without a common question has no rows, and a warning.
    The second has the columns `TRENDS`: the least-squares slope per checkpoint, on the
    questions that all answered. It is empty for fewer than three checkpoints, and with a
    warning where they share no question.
    """
    questions = {pair: shared(answers, pair) for pair in pairs}
    for earlier, later in [pair for pair in pairs if not questions[pair]]:
        log.warning(
            "%s and %s answered no question in common, so they are not compared.",
            answers.checkpoints[earlier],
            answers.checkpoints[later],
        )
    compared = [
        (pair, [State(k, questions[pair]) for k in pair]) for pair in pairs if questions[pair]
    ]
    n = len(answers.checkpoints)
    by_all = shared(answers, range(n))
    along = [State(k, by_all) for k in range(n)] if n > 2 and by_all else []
    if n > 2 and not by_all:
        log.warning("No question was answered at every checkpoint, so no trend is computed.")
    states = list(dict.fromkeys([state for _, named in compared for state in named] + along))
    resampled = resample_states(answers, states, n_replicates=n_replicates, seed=seed)
    differences, slopes = [], []
    for pair, named in compared:
        first, second = map(states.index, named)
        right = answers.correct[np.ix_(pair, questions[pair])] == 1
        place = [answers.checkpoints[k] for k in pair]
        for kind, (observed, replicated) in resampled.items():
            if kind[2] == ACCURACY:
                test = compare_accuracies(*right)
            else:
                drawn = _for_claims(kind, replicated[second] - replicated[first])
                test = compare_replicates(observed[first], observed[second], drawn)
            differences.append((*place, *kind, *test))
    if along:
        centred = np.arange(n) - (n - 1) / 2
        slope, rows = centred / (centred**2).sum(), [states.index(state) for state in along]
        for kind, (observed, replicated) in resampled.items():
            drawn = _for_claims(kind, slope @ replicated[rows])
            test = compare_replicates(0.0, slope @ observed[rows], drawn)
            slopes.append((*kind, n, *test[2:]))
    return pd.DataFrame(differences, columns=STATES), pd.DataFrame(slopes, columns=TRENDS)


def _for_claims(kind: Kind, drawn: Array) -> Array:
    """Return replicates of a difference, or NaN if the metric has no valid interval."""
    measure = MEASURES.get(kind[2])  # None for accuracy
    return drawn if measure is None or measure.has_interval else np.full_like(drawn, np.nan)


def join(first: AnswerArrays, second: AnswerArrays) -> AnswerArrays:
    """Join the last checkpoints of two models as two checkpoints of one model.

    Only questions and estimators of both models are kept. The confidence is NaN for a seed that
    a model lacks.
    """
    questions, *places = np.intersect1d(first.questions, second.questions, return_indices=True)
    sides = list(zip((first, second), places, strict=True))
    return AnswerArrays(
        (first.checkpoints[-1], second.checkpoints[-1]),
        questions,
        np.stack([side.correct[-1, place] for side, place in sides]),
        {
            series: np.stack(
                [
                    side.confidence[series][-1, place]
                    if series in side.confidence
                    else np.full(len(questions), np.nan)
                    for side, place in sides
                ]
            )
            for series in sorted({*first.confidence, *second.confidence})
            if series[:2] in first.rows and series[:2] in second.rows
        },
    )


def compare_states(
    predictions: Mapping[str, pd.DataFrame],
    checkpoints: Mapping[str, Sequence[str]],
    *,
    dataset: str,
    pairs: Pairs,
    n_replicates: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables STATES and TRENDS of all models on one dataset.

    The names of estimators include their training dataset if it is not `dataset`. Two models
    are compared at their last checkpoints. Holm's method adjusts for the pairs of checkpoints
    of a model, or for the pairs of models.
    """
    settings = {"n_replicates": n_replicates, "seed": seed}
    answers = {model: arrange(rows, checkpoints[model]) for model, rows in predictions.items()}
    compared, along = [], []
    for model, arrays in answers.items():
        chosen = choose_pairs(pairs, arrays.checkpoints)
        table, slopes = compare_checkpoints(arrays, chosen, **settings)
        compared.append(table.assign(model=model, other_model=""))
        along.append(slopes.assign(model=model))
    answered = {
        m: arrays.questions[arrays.correct[-1] != ABSENT] for m, arrays in answers.items()
    }
    for sentence in shared_by_models(answered):
        log.warning("%s: the last checkpoints of %s", dataset, sentence)
    for model, other_model in combinations(answers, 2):
        joined = join(answers[model], answers[other_model])
        table, _ = compare_checkpoints(joined, [(0, 1)], **settings)
        compared.append(table.assign(model=model, other_model=other_model))
    states, trends = (
        _named(pd.concat([rows for rows in tables if len(rows)] or tables[:1]), dataset)
        for tables in (compared, along)
    )
    family = ["estimator", "metric", "seed", states["other_model"] == ""]
    own_model = np.where(states["other_model"] == "", states["model"], "")
    by_family = states.groupby([*family, own_model], sort=False)["p_value"]
    adjusted = by_family.transform(lambda p: holm(p.to_list())).astype(float)
    return states.assign(p_holm=adjusted), trends


def _named(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Add the training dataset to the estimators' names if it is not `dataset`."""
    elsewhere = ~rows["train_dataset"].isin([dataset, ""])
    trained = rows["estimator"] + " (trained on " + rows["train_dataset"] + ")"
    named = rows.assign(dataset=dataset, estimator=rows["estimator"].where(~elsewhere, trained))
    return named.drop(columns="train_dataset").reset_index(drop=True)

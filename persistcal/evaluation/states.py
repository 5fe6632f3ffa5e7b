"""Checkpoints against each other, and differences of proportions with their intervals."""

import logging
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.bootstrap import Bootstrap, blocks
from persistcal.evaluation.contrast import FullSet
from persistcal.evaluation.evaluate import compute
from persistcal.evaluation.metrics.registry import METRICS, names
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, shared_by_models
from persistcal.evaluation.proportions import compare_accuracies, compare_replicates, holm
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.weighted import mean_gap

log = logging.getLogger(__name__)

KEY = ["train_dataset", "estimator", "metric", "seed"]
ENDS = ["lower_2_5pct", "upper_97_5pct", "p_value"]
STATES = ["earlier", "later", *KEY, "earlier_value", "later_value", "difference", *ENDS]
TRENDS = [*KEY, "n_checkpoints", "slope", *ENDS]
ACCURACY = "accuracy"
MEAN = "mean"  # over seeds


class MeasuredSeries(NamedTuple):
    """A metric of an estimator with one seed, or with "mean" over seeds."""

    train_dataset: str
    estimator: str
    metric: str
    seed: str


class State(NamedTuple):
    """A checkpoint on some of the questions that it answered: their positions, ascending."""

    checkpoint: int
    questions: tuple[int, ...]


def resample_states(
    answers: AnswerArrays, states: Sequence[State], settings: EvaluationSettings
) -> dict[MeasuredSeries, list[Sample]]:
    """Evaluate states on the same bootstrap replicates, which draw whole groups of questions.

    The full-set metrics of each series that all states have and, with seed "mean", each state's
    mean over its own seeds; and with an empty estimator the accuracy. Replicates are NaN if
    they lack a class, or if the metric has no interval.
    """
    n_questions, series = len(answers.questions), list(answers.confidence)
    bootstrap, n_replicates = Bootstrap(answers, settings), settings.n_replicates
    if not series and len(np.unique(answers.groups)) == n_questions:
        n_replicates = 0  # McNemar's test needs none
    shape = (len(states), n_replicates + 1)  # the data are in the first column
    accuracy = np.empty(shape)
    metrics = names("full")
    with_interval = [name for name in metrics if METRICS[name].has_interval]
    values = {(m, i): np.full(shape, np.nan) for m in metrics for i in range(len(series))}
    ids = [np.array(state.questions, int) for state in states]
    labels = [
        answers.correct[state.checkpoint, chosen] == 1
        for state, chosen in zip(states, ids, strict=True)
    ]
    runs: list[dict[int, FullSet]] = []  # of each state, by the number of the series
    for state, questions, right in zip(states, ids, labels, strict=True):
        stated = [run[state.checkpoint, questions] for run in answers.confidence.values()]
        runs.append(
            {
                i: FullSet(confidence, right, [slice(0, len(right))])
                for i, confidence in enumerate(stated)
                if not np.isnan(confidence).any()
            }
        )
    classes = (a[of] for a, right in zip(ids, labels, strict=True) for of in (right, ~right))
    linear: list[str] = []
    drawn = blocks(n_replicates, 4 * n_questions + 10_000)
    is_large = bootstrap.is_large(classes)
    if is_large:
        linear = [name for name in with_interval if METRICS[name].has_influence]
        with_interval = [name for name in with_interval if name not in linear]
        drawn = drawn if with_interval else []
    for block in [range(-1, 0), *drawn]:
        columns = slice(block.start + 1, block.stop + 1)
        chosen = metrics if block.start < 0 else with_interval
        for row, questions in enumerate(ids):
            counts = np.ones((len(questions), 1), np.uint8)
            if block.start >= 0:
                counts = bootstrap.counts(questions, block)
            accuracy[row, columns] = mean_gap(labels[row].astype(float), weights=counts)
            if series:
                measured = compute("full", list(runs[row].values()), counts, chosen=chosen)
                for name, run_values in measured.items():
                    for i, value in zip(runs[row], run_values, strict=True):
                        values[name, i][row, columns] = value
    if is_large and n_replicates:
        rows = range(len(states))
        keys = [(row, name, i) for row in rows for name in linear for i in runs[row]]
        added = bootstrap.linear(
            chain(
                ((ids[r], (labels[r] - labels[r].mean()) / len(labels[r])) for r in rows),
                ((ids[r], METRICS[n].influence(runs[r][i], "full")) for r, n, i in keys),
            )
        )
        accuracy[:, 1:] = accuracy[:, :1] + added[: len(states)]
        for (row, name, i), of_run in zip(keys, added[len(states) :], strict=True):
            values[name, i][row, 1:] = values[name, i][row, 0] + of_run
    made = {MeasuredSeries("", "", ACCURACY, ""): accuracy}
    for member, numbers in answers.rows.items():
        everywhere = [i for i in numbers if all(i in present for present in runs)]
        for name in metrics:
            made |= {
                MeasuredSeries(*member, name, str(series[i].seed)): values[name, i]
                for i in everywhere
            }
            means = [
                np.mean([values[name, i][row] for i in numbers if i in present], axis=0)
                for row, present in enumerate(runs)
            ]
            made[MeasuredSeries(*member, name, MEAN)] = np.reshape(means, accuracy.shape)
    return {
        kind: [Sample(float(row[0]), row[1:], {}) for row in rows]
        for kind, rows in made.items()
    }


def compare_checkpoints(
    answers: AnswerArrays, pairs: Sequence[tuple[int, int]], settings: EvaluationSettings
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare pairs of checkpoints, by position, and follow each metric along the order of all.

    The first table has the columns `STATES`, on the questions that both checkpoints answered; a
    difference is later − earlier. A pair without a common question has no rows, and a warning.
    The second has the columns `TRENDS`: the least-squares slope per checkpoint, on the
    questions that all answered. It is empty for fewer than three checkpoints, or without such
    questions, with a warning.
    """
    questions = {pair: tuple(answers.answered_by_all(pair).tolist()) for pair in pairs}
    for earlier, later in [pair for pair in pairs if not questions[pair]]:
        log.warning(
            "%s and %s answered no question in common, so they are not compared.",
            answers.checkpoints[earlier],
            answers.checkpoints[later],
        )
    compared = {
        pair: [State(k, shared) for k in pair] for pair, shared in questions.items() if shared
    }
    n = len(answers.checkpoints)
    by_all = tuple(answers.answered_by_all(range(n)).tolist())
    along = [State(k, by_all) for k in range(n)] if n > 2 and by_all else []
    if n > 2 and not by_all:
        log.warning("No question was answered at every checkpoint, so no trend is computed.")
    states = list(
        dict.fromkeys([*(state for ends in compared.values() for state in ends), *along])
    )
    resampled = resample_states(answers, states, settings)
    # McNemar's test needs independent questions
    has_groups = len(np.unique(answers.groups)) < len(answers.groups)
    differences, slopes = [], []
    for pair, ends in compared.items():
        first, second = map(states.index, ends)
        right = answers.correct[np.ix_(pair, questions[pair])] == 1
        place = [answers.checkpoints[k] for k in pair]
        for kind, samples in resampled.items():
            if kind.metric == ACCURACY and not has_groups:
                test = compare_accuracies(*right)
            else:
                drawn = samples[second].draws - samples[first].draws
                test = compare_replicates(samples[first].value, samples[second].value, drawn)
            differences.append((*place, *kind, *test))
    if along:
        centred = np.arange(n) - (n - 1) / 2
        slope, rows = centred / (centred**2).sum(), [states.index(state) for state in along]
        for kind, samples in resampled.items():
            values = slope @ np.array([samples[row].value for row in rows])
            drawn = slope @ np.array([samples[row].draws for row in rows])
            test = compare_replicates(0.0, values, drawn)
            slopes.append((*kind, n, *test[2:]))
    return pd.DataFrame(differences, columns=STATES), pd.DataFrame(slopes, columns=TRENDS)


def join(first: AnswerArrays, second: AnswerArrays) -> AnswerArrays:
    """Join the last checkpoints of two models as two checkpoints of one model.

    Only questions and estimators of both models are kept. The confidence is NaN for a seed that
    a model lacks.
    """
    questions, *positions = np.intersect1d(
        first.questions, second.questions, return_indices=True
    )
    sides = list(zip((first, second), positions, strict=True))
    lacking = np.full((1, max(len(first.questions), len(second.questions))), np.nan)
    confidence = {
        series: np.stack(
            [side.confidence.get(series, lacking)[-1, place] for side, place in sides]
        )
        for series in sorted({*first.confidence, *second.confidence})
        if series.member in first.rows and series.member in second.rows
    }
    names = first.checkpoints[-1], second.checkpoints[-1]
    correct = np.stack([side.correct[-1, place] for side, place in sides])
    groups = sides[0][0].groups[sides[0][1]]
    return AnswerArrays(names, questions, correct, confidence, groups)


def compare_states(
    subjects: Mapping[str, Aligned], settings: EvaluationSettings, *, dataset: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables STATES and TRENDS of all models on one dataset.

    The names of estimators include their training dataset if it is not `dataset`. Two models
    are compared at their last checkpoints. Holm's method adjusts for the pairs of checkpoints
    of a model, or for the pairs of models.
    """
    answers = {model: data.answers for model, data in subjects.items()}
    compared, along = [], []
    for model, data in subjects.items():
        pairs = [(pair.earlier, pair.later) for pair in data.sets]
        table, slopes = compare_checkpoints(data.answers, pairs, settings)
        compared.append(table.assign(model=model, other_model=""))
        along.append(slopes.assign(model=model))
    answered = {
        m: arrays.questions[arrays.correct[-1] != ABSENT] for m, arrays in answers.items()
    }
    for sentence in shared_by_models(answered):
        log.warning("%s: the last checkpoints of %s", dataset, sentence)
    for model, other_model in combinations(answers, 2):
        joined = join(answers[model], answers[other_model])
        table, _ = compare_checkpoints(joined, [(0, 1)], settings)
        compared.append(table.assign(model=model, other_model=other_model))
    named = []
    for tables in (compared, along):
        rows = pd.concat([table for table in tables if len(table)] or tables[:1])
        is_own = rows["train_dataset"].isin([dataset, ""])
        trained = rows["estimator"] + " (trained on " + rows["train_dataset"] + ")"
        rows = rows.assign(dataset=dataset, estimator=rows["estimator"].where(is_own, trained))
        named.append(rows.drop(columns="train_dataset").reset_index(drop=True))
    states, trends = named
    is_own = states["other_model"] == ""
    family = ["estimator", "metric", "seed", is_own, states["model"].where(is_own, "")]
    by_family = states.groupby(family, sort=False)["p_value"]
    return states.assign(p_holm=by_family.transform(holm).astype(float)), trends

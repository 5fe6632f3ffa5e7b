"""Bootstrap replicates of metrics, and the table that keeps them.

The replicates of each estimator can be computed separately. Replicates of two estimators are
paired if both were drawn from the same answers with the same seed; a digest verifies this.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import (
    CONDITIONINGS,
    Conditioning,
    Pairs,
    choose_pairs,
    contrast_sets,
)
from persistcal.evaluation.draws import (
    MIN_DIRECTION,
    PSEUDO,
    PSEUDO_AUC,
    Component,
    Counts,
    Sequences,
    count_draws,
    draw_sequences,
    pseudo_weights,
    question_weights,
    reach,
    replicate_run,
)
from persistcal.evaluation.evaluate import (
    Key,
    Prepared,
    count_once,
    defining,
    metrics_under,
    prepare,
)
from persistcal.evaluation.metrics import MEASURES
from persistcal.evaluation.predictions import AnswerArrays, arrange

log = logging.getLogger(__name__)

Estimator = tuple[str, str]  # train_dataset and name
MIN_REPLICATES = 200  # that an interval or a test takes
MEMORY = 500_000_000  # bytes: the limit for the replicates of a block
LARGEST_BLOCK = 5_000  # replicates: larger blocks are not faster
KEY = ["conditioning", "scope", "metric"]
# Metrics with claims from draws that ignore which answers are correct
FREE = [
    n for n, measure in MEASURES.items() if measure.has_interval and not measure.both_directions
]
VALUES = [
    "value",
    "replicates",
    "claims",
    "improvement",
    "regression",
    "drawn",
    "seeds",
    "by_seed",
    "noise",
    "n_effective",
]


class Replicates(NamedTuple):
    """Metrics of every estimator on the data and on its bootstrap replicates.

    All fields are keyed by (conditioning, scope, metric). `observed` contains means over seeds
    on the data, (n_estimators,), `replicated` means on replicates, (n_estimators,
    n_replicates), and `by_seed` each estimator's metric on the data by seed. `noise` is the
    variance between seeds that comes from the questions: the excess of the variance on
    replicates over the variance on the data, 0 for a single seed. `n_effective` is the
    effective number of questions of a metric, see `effective_questions`.

    `replicated` keeps the numbers of correct answers and of gained questions, as in the paper.
    `claims` has the replicates for our own intervals and tests. They come from
    `persistcal.evaluation.draws` for metrics that need both gained and lost questions, and
    otherwise from draws that ignore correctness, so that they include the sampling error of
    accuracy. `fewest` has the numbers of gained and lost questions in the pair with the fewest
    questions of the rarer direction.
    """

    estimators: list[Estimator]
    observed: dict[Key, NDArray[np.float64]]
    replicated: dict[Key, NDArray[np.float64]]
    by_seed: dict[Key, list[dict[int, float]]]
    noise: dict[Key, NDArray[np.float64]]
    n_effective: dict[Key, float]
    claims: Mapping[Key, NDArray[np.float64]] = MappingProxyType({})
    fewest: Mapping[Key, tuple[int, int]] = MappingProxyType({})

    def for_claims(self, key: Key) -> NDArray[np.float64]:
        """Return the replicates of a metric for intervals, two-sided p-values and claims.

        The shape is (n_estimators, n_replicates). All are NaN if a pair has too few gained or
        lost questions for the metric. The marks in the paper's tables (column `lower_5pct`)
        rest on `replicated` instead.
        """
        if not MEASURES[key[2]].has_interval:
            return np.full_like(self.replicated[key], np.nan)
        return self.claims.get(key, self.replicated[key])


def replicate_metrics(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    min_direction: int = MIN_DIRECTION,
    n_replicates: int = 10_000,
    seed: int = 0,
    conditionings: Sequence[Conditioning] = CONDITIONINGS,
    pairs: Pairs = "all",
) -> Replicates:
    """Evaluate every estimator on the same bootstrap replicates.

    Parameters
    ----------
    predictions, checkpoints, min_contrast, conditionings, pairs
        As for `persistcal.evaluation.evaluate.evaluate`.
    min_direction : int
        Questions that each pair needs to gain, and to lose, for claims on metrics that rest on
        both. With fewer in a pair the claims are NaN, and a warning names the pair.
    """
    answers = arrange(predictions, checkpoints)
    sets = contrast_sets(
        answers.correct, min_contrast=min_contrast, pairs=choose_pairs(pairs, checkpoints)
    )
    data = prepare(answers, [pair for pair in sets if pair.kept], conditionings)
    observed = metrics_under(count_once, data)
    replicated = {key: np.empty((len(answers.estimators), n_replicates)) for key in observed}
    free = {key: np.empty_like(rows) for key, rows in replicated.items() if key[2] in FREE}
    spread = {key: np.zeros(len(answers.estimators)) for key in observed}
    parts = [*data.full, *data.contrast]
    far = reach(parts, len(answers.questions))
    size = replicates_at_once(data, len(answers.questions), far, memory=MEMORY)
    for start in range(0, n_replicates, size):
        block = range(start, min(start + size, n_replicates))
        sequences = draw_sequences(len(answers.questions), block, seed=seed, reach=far)
        values = metrics_under(partial(count_draws, sequences=sequences), data)
        drawn = metrics_under(partial(_count, sequences), data, chosen=FREE)
        for key, of_runs in drawn.items():
            free[key][:, block.start : block.stop] = mean_over_seeds(of_runs, answers)
        for key, of_runs in values.items():
            replicated[key][:, block.start : block.stop] = mean_over_seeds(of_runs, answers)
            spread[key] += _between_seeds(of_runs, answers).sum(axis=1) / n_replicates
    directed, fewest = _directions(answers, data, min_direction, n_replicates, seed)
    return Replicates(
        list(answers.estimators),
        {key: mean_over_seeds(of_runs, answers)[:, 0] for key, of_runs in observed.items()},
        replicated,
        {key: _by_seed(of_runs[:, 0], answers) for key, of_runs in observed.items()},
        {
            key: np.maximum(0, spread[key] - _between_seeds(of_runs, answers)[:, 0])
            for key, of_runs in observed.items()
        },
        {
            (conditioning, scope, metric): effective_questions(
                data.full
                if scope == "full"
                else [data.contrast[number] for number in defining(metric, data.contrast)],
                balanced=MEASURES[metric].both_directions,
            )
            for conditioning, scope, metric in observed
        },
        free | directed,
        fewest,
    )


def effective_questions(parts: Sequence[Component], *, balanced: bool) -> float:
    """Return the effective number of questions of a mean over components.

    It is the sum of the questions' weights divided by the largest weight. Components share
    questions. If both classes have equal total weight (`balanced`), a question of the smaller
    class weighs more.

    >>> pair = Component(np.arange(50), n_first=40)
    >>> round(effective_questions([pair], balanced=False))
    50
    >>> round(effective_questions([pair], balanced=True))
    10
    """
    weight = np.zeros(1 + max((part.questions.max(initial=0) for part in parts), default=0))
    for part in parts:
        n, n_first = len(part.questions), part.n_first
        sizes = [n_first, n - n_first] if balanced else [n, n]
        weight[part.questions] += 1 / np.repeat(sizes, [n_first, n - n_first])
    return float(len(parts) / weight.max()) if weight.any() else 0.0


def _count(sequences: Sequences, part: Component) -> Counts:
    """Count how often a replicate draws each question of a component."""
    return sequences.counts[part.questions]


def _directions(
    answers: AnswerArrays, data: Prepared, min_direction: int, n_replicates: int, seed: int
) -> tuple[dict[Key, NDArray[np.float64]], dict[Key, tuple[int, int]]]:
    """Return the claims and the fewest questions of metrics that rest on both directions."""
    metrics = [name for name, measure in MEASURES.items() if measure.both_directions]
    kept = defining(metrics[0], data.contrast)  # the same for all metrics
    keys: list[Key] = [(c, "contrast", metric) for c in data.on_contrast for metric in metrics]
    shape = (len(answers.estimators), n_replicates)
    if not kept:
        return {key: np.full(shape, np.nan) for key in keys}, {}
    parts = {number: data.contrast[number] for number in kept}
    counts = [(part.n_first, len(part.questions) - part.n_first) for part in parts.values()]
    fewest = min(counts, key=min)
    if min(fewest) < min_direction:
        log.warning(
            "A pair of checkpoints gains %d and loses %d questions: fewer than %d of either "
            "give no interval and no test of %s. Ask more questions.",
            *fewest,
            min_direction,
            ", ".join(MEASURES[metric].heading for metric in metrics),
        )
        return {key: np.full(shape, np.nan) for key in keys}, dict.fromkeys(keys, fewest)
    claims = {key: np.zeros(shape) for key in keys}
    asked = np.unique(np.concatenate([part.questions for part in parts.values()]))
    largest = max(len(part.questions) for part in parts.values())
    sets = f"{counts} {asked.tolist()}"
    bytes_each = 8 * (3 * len(asked) + 2 * largest)
    size = min(LARGEST_BLOCK, max(1, MEMORY // bytes_each))
    pseudo = [
        [
            pseudo_weights((*member, sets), n_replicates, seed=seed, expected=expected)
            for expected in (PSEUDO, PSEUDO_AUC)
        ]
        for member in answers.estimators
    ]
    for start in range(0, n_replicates, size):
        block = range(start, min(start + size, n_replicates))
        columns = slice(block.start, block.stop)
        weights = question_weights(len(answers.questions), asked, block, seed=seed)
        for number, part in parts.items():
            part_weights = weights[np.searchsorted(asked, part.questions)]
            for conditioning, by_pair in data.on_contrast.items():
                for row, numbers in enumerate(answers.rows.values()):
                    runs = [by_pair[number][i] for i in numbers]
                    for metric, values in replicate_run(
                        runs, part, part_weights, [counts[:, columns] for counts in pseudo[row]]
                    ):
                        mean = values.mean(axis=0) / len(parts)
                        claims[conditioning, "contrast", metric][row, columns] += mean
    return claims, dict.fromkeys(keys, fewest)


def replicates_at_once(data: Prepared, n_questions: int, reach: int, *, memory: int) -> int:
    """Return how many replicates fit into `memory` bytes."""
    n_answers = sum(len(part.questions) for part in data.full)
    largest = max((len(part.questions) for part in [*data.full, *data.contrast]), default=0)
    nearby = 2 * reach * np.min_scalar_type(n_questions).itemsize
    # counts of all questions, of the pooled answers, and of a component while it is drawn
    bytes_each = n_questions + n_answers + 2 * largest + nearby + 2_000
    return min(LARGEST_BLOCK, max(1, memory // bytes_each))


def mean_over_seeds(of_runs: NDArray[np.float64], answers: AnswerArrays) -> NDArray[np.float64]:
    """Average rows, one per series, over the series of each estimator."""
    return np.array([of_runs[numbers].mean(axis=0) for numbers in answers.rows.values()])


def _between_seeds(of_runs: NDArray[np.float64], answers: AnswerArrays) -> NDArray[np.float64]:
    """Return the variance of rows, one per series, over the series of each estimator."""
    several = (of_runs[numbers] for numbers in answers.rows.values())
    return np.array([o.var(axis=0, ddof=1) if len(o) > 1 else 0 * o[0] for o in several])


def _by_seed(of_runs: NDArray[np.float64], answers: AnswerArrays) -> list[dict[int, float]]:
    """Return of each estimator its values by seed, from a value per series."""
    seeds, values = [series.seed for series in answers.confidence], of_runs.tolist()
    return [{seeds[i]: values[i] for i in numbers} for numbers in answers.rows.values()]


class UnpairedError(ValueError):
    """Estimators were resampled from other answers, or with another seed."""


def digest_of_draws(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    min_direction: int,
    n_replicates: int,
    seed: int,
    pairs: Pairs,
) -> str:
    """Return a digest of all that decides which questions are drawn, and nothing else."""
    answers = predictions[["checkpoint", "question_id", "correct"]].drop_duplicates()
    rows = answers.sort_values(["checkpoint", "question_id"]).to_csv(index=False)
    settings = [*checkpoints, min_contrast, min_direction, n_replicates, seed, pairs]
    return hashlib.sha256(f"{settings}\n{rows}".encode()).hexdigest()[:16]


def to_table(replicates: Replicates, drawn: str) -> pd.DataFrame:
    """Return the rows of the table REPLICATES, a row per estimator and metric."""
    rows = []
    for key, columns in replicates.replicated.items():
        for i, estimator in enumerate(replicates.estimators):
            by_seed = replicates.by_seed[key][i]
            value = replicates.observed[key][i]
            seeds = [*by_seed], [*by_seed.values()], replicates.noise[key][i]
            claims = replicates.claims[key][i] if key in replicates.claims else []
            counts = replicates.fewest.get(key, (None, None))
            fields = (claims, *counts, drawn, *seeds, replicates.n_effective[key])
            rows.append((*estimator, *key, value, columns[i], *fields))
    return pd.DataFrame(rows, columns=["train_dataset", "estimator", *KEY, *VALUES])


def from_table(table: pd.DataFrame) -> Replicates:
    """Return the replicates of all estimators in rows of one or more tables REPLICATES.

    An UnpairedError lists replicates that were drawn differently.
    """
    by_draw = table.groupby("drawn")["estimator"].unique()
    if len(by_draw) > 1:
        sides = " and ".join(", ".join(map(repr, names)) for names in by_draw)
        raise UnpairedError(
            f"Replicates of {sides} were drawn from other answers, so they cannot be compared "
            "in pairs; run resample_metrics again for all of them."
        )
    estimators = list(
        table[["train_dataset", "estimator"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    observed: dict[Any, NDArray[np.float64]] = {}
    replicated: dict[Any, NDArray[np.float64]] = {}
    by_seed: dict[Any, list[dict[int, float]]] = {}
    noise: dict[Any, NDArray[np.float64]] = {}
    claims: dict[Any, NDArray[np.float64]] = {}
    fewest: dict[Any, tuple[int, int]] = {}
    n_effective: dict[Any, float] = {}
    for key, rows in table.groupby(KEY, sort=False):
        by_estimator = rows.set_index(["train_dataset", "estimator"]).loc[estimators]
        observed[key] = by_estimator["value"].to_numpy()
        replicated[key] = np.stack(by_estimator["replicates"].to_list())
        pairs = zip(by_estimator["seeds"], by_estimator["by_seed"], strict=True)
        by_seed[key] = [dict(zip(map(int, s), map(float, v), strict=True)) for s, v in pairs]
        noise[key] = by_estimator["noise"].to_numpy()
        if MEASURES[rows["metric"].iloc[0]].has_interval:
            claims[key] = np.stack(by_estimator["claims"].to_list())
        if MEASURES[rows["metric"].iloc[0]].both_directions:
            counts = by_estimator[["improvement", "regression"]].iloc[0]
            if counts.notna().all():
                fewest[key] = int(counts["improvement"]), int(counts["regression"])
        n_effective[key] = float(by_estimator["n_effective"].iloc[0])
    made = (estimators, observed, replicated, by_seed, noise, n_effective, claims, fewest)
    return Replicates(*made)

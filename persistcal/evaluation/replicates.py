"""Bootstrap replicates of metrics, and the table that keeps them.

The replicates of each estimator can be computed separately. Replicates of two estimators are
paired if both were drawn from the same answers with the same seed; a digest verifies this.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation import draws
from persistcal.evaluation.aligned import MEMBER, Aligned
from persistcal.evaluation.blocks import Member
from persistcal.evaluation.draws import Component
from persistcal.evaluation.evaluate import (
    count_once,
    defining,
    metrics_under,
    not_computed,
)
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import AnswerArrays, Array
from persistcal.evaluation.runs import OnContrastSet
from persistcal.evaluation.settings import EvaluationSettings

log = logging.getLogger(__name__)

MEMORY = 500_000_000  # bytes: the limit for the replicates of a block
UNFINISHED = " …"  # ends the name of a part of a step
LARGEST_BLOCK = 5_000  # replicates: larger blocks are not faster
KEY = ["conditioning", "scope", "metric"]
VALUES = ["value", "replicates", "claims", "improvement", "regression", "drawn"]
VALUES += ["seeds", "by_seed", "noise", "n_effective"]


def directed() -> list[str]:
    """Return the metrics that rest on gained and on lost questions."""
    return [name for name, measure in METRICS.items() if measure.both_directions]


def free() -> list[str]:
    """Return the metrics with claims from draws that ignore which answers are correct."""
    return [
        name
        for name, measure in METRICS.items()
        if measure.has_interval and not measure.both_directions
    ]


class Replicates(NamedTuple):
    """Metrics of every estimator on the data and on its bootstrap replicates.

    All fields are keyed by (conditioning, scope, metric). `observed` contains means over seeds
    on the data, (n_estimators,), `replicated` means on replicates, (n_estimators,
    n_replicates), and `by_seed` each estimator's metric on the data by seed. `noise` is the
    variance between seeds that comes from the questions: the excess of the variance on
    replicates over the variance on the data, 0 for a single seed. For `n_effective` see
    `effective_questions`.

    `replicated` keeps the numbers of correct answers and of gained questions, as in the paper.
    `claims` has the replicates for our own intervals and tests: weighted ones, see `draws`, for
    metrics that need both gained and lost questions, and otherwise draws that ignore
    correctness, so that they include the sampling error of accuracy. `fewest` has the numbers
    of gained and lost questions in the pair with the fewest of the rarer direction.
    """

    estimators: list[Member]
    observed: dict[MetricKey, Array]
    replicated: dict[MetricKey, Array]
    by_seed: dict[MetricKey, list[dict[int, float]]]
    noise: dict[MetricKey, Array]
    n_effective: dict[MetricKey, float]
    claims: Mapping[MetricKey, Array] = MappingProxyType({})
    fewest: Mapping[MetricKey, tuple[int, int]] = MappingProxyType({})

    def for_claims(self, key: MetricKey) -> Array:
        """Return a metric's replicates for intervals, two-sided p-values and claims.

        The shape is (n_estimators, n_replicates). All are NaN if a pair has too few gained or
        lost questions for the metric. The marks in the paper's tables rest on `replicated`.
        """
        if not METRICS[key.metric].has_interval:
            return np.full_like(self.replicated[key], np.nan)
        return self.claims.get(key, self.replicated[key])


def replicate(
    data: Aligned, settings: EvaluationSettings, step: Callable[[str], None] = lambda _: None
) -> Replicates:
    """Evaluate every estimator on the same bootstrap replicates.

    For claims on metrics that rest on gained and lost questions each pair needs `min_direction`
    of both. With fewer in a pair the claims are NaN, and a warning names the pair. `step`
    receives how many replicates are finished.
    """
    answers = data.answers
    n_replicates, n_questions = settings.n_replicates, len(answers.questions)
    shape, n_groups = (len(answers.rows), n_replicates), len(np.unique(answers.groups))
    observed = metrics_under(count_once, data, settings.conditionings)
    replicated = {key: np.full(shape, np.nan) for key in observed}
    replicated_names = [
        name for name, metric in METRICS.items() if metric.has_interval or settings.paper_marks
    ]
    chosen = free()
    claims = {key: np.empty(shape) for key in observed if key.metric in chosen}
    spread = {key: np.zeros(len(answers.rows)) for key in observed}
    parts = [*data.parts, *(pair.part for pair in data.kept)]
    far = draws.reach(parts, n_questions)
    for block in blocks(n_replicates, _bytes_each(data, n_questions, far)):
        columns = slice(block.start, block.stop)
        sequences = draws.draw_sequences(n_questions, block, seed=settings.seed, reach=far)
        group_counts = sequences.counts
        if n_groups < n_questions:
            group_counts = draws.draw_sequences(
                n_groups, block, seed=settings.seed, reach=0
            ).counts
        values = metrics_under(
            partial(draws.count_draws, sequences=sequences),
            data,
            settings.conditionings,
            chosen=replicated_names,
        )
        unstratified = metrics_under(
            partial(_count, group_counts, answers.groups),
            data,
            settings.conditionings,
            chosen=chosen,
        )
        for key, run_values in unstratified.items():
            claims[key][:, columns] = mean_over_seeds(run_values, answers)
        for key, run_values in values.items():
            replicated[key][:, columns] = mean_over_seeds(run_values, answers)
            spread[key] += _between_seeds(run_values, answers).sum(axis=1) / n_replicates
        step(f"{block.stop:,} of {n_replicates:,} replicates{UNFINISHED}")
    directed, fewest = _directions(data, settings, step)
    seeds = [series.seed for series in answers.confidence]
    means, by_seed, noise, n_effective = {}, {}, {}, {}
    for key, run_values in observed.items():
        on_data = run_values[:, 0].tolist()
        means[key] = mean_over_seeds(run_values, answers)[:, 0]
        by_seed[key] = [{seeds[i]: on_data[i] for i in row} for row in answers.rows.values()]
        noise[key] = np.maximum(0, spread[key] - _between_seeds(run_values, answers)[:, 0])
        parts = data.parts
        if key.scope == "contrast":
            parts = [data.kept[n].part for n in defining(key.metric, data.kept)]
        balanced = METRICS[key.metric].both_directions
        n_effective[key] = effective_questions(parts, answers.groups, balanced=balanced)
    claims |= directed
    return Replicates(
        list(answers.rows),
        observed=means,
        replicated=replicated,
        by_seed=by_seed,
        noise=noise,
        n_effective=n_effective,
        claims=claims,
        fewest=fewest,
    )


def replicate_runs(
    runs: Sequence[OnContrastSet],
    part: Component,
    weights: Array,
    pseudo: Mapping[float, Array],
    sizes: tuple[float, float] = (1.0, 1.0),
    *,
    chosen: Collection[str] = METRICS,
) -> dict[str, Array]:
    """Return the replicates, (n_runs, n_replicates), of each metric of both directions.

    `pseudo` has the weights of pseudo-questions by their expected value, for all runs or for
    each, and `sizes` the mean sizes of groups.
    """
    return {
        name: metric.weighted(runs, part.is_first, weights, pseudo[metric.pseudo], sizes)
        for name, metric in METRICS.items()
        if metric.both_directions and name in chosen
    }


def blocks(n_replicates: int, bytes_each: int) -> list[range]:
    """Divide replicates into blocks that fit into MEMORY."""
    size = min(LARGEST_BLOCK, max(1, MEMORY // bytes_each))
    starts = range(0, n_replicates, size)
    return [range(start, min(start + size, n_replicates)) for start in starts]


def _bytes_each(data: Aligned, n_questions: int, reach: int) -> int:
    """Return the memory of a replicate.

    It has counts of all questions, of the pooled answers, and of a component while it is drawn.
    """
    n_answers = sum(part.size for part in data.parts)
    largest = max(
        [*(part.size for part in data.parts), *(pair.counts.changed for pair in data.kept)],
        default=0,
    )
    nearby = 2 * reach * np.min_scalar_type(n_questions).itemsize
    return n_questions + n_answers + 2 * largest + nearby + 2_000


def effective_questions(
    parts: Sequence[Component], groups: NDArray[np.intp], *, balanced: bool
) -> float:
    """Return the effective number of groups of questions of a mean over components.

    It is the sum of the groups' weights divided by the largest weight. Components share
    questions. If both classes have equal total weight (`balanced`), a question of the smaller
    class weighs more.

    >>> pair, alone = Component(np.arange(50), n_first=40), np.arange(50)
    >>> round(effective_questions([pair], alone, balanced=False))
    50
    >>> round(effective_questions([pair], alone, balanced=True))
    10
    """
    weight = np.zeros(1 + groups.max(initial=0))
    for part in parts:
        sizes = [part.n_first, part.n_second] if balanced else [part.size, part.size]
        question_weight = 1 / np.repeat(sizes, [part.n_first, part.n_second])
        np.add.at(weight, groups[part.questions], question_weight)
    return float(len(parts) / weight.max()) if weight.any() else 0.0


def _count(counts: draws.Counts, groups: NDArray[np.intp], part: Component) -> draws.Counts:
    """Count how often a replicate draws each question of a component, with its group."""
    return counts[groups[part.questions]]


def _directions(
    data: Aligned, settings: EvaluationSettings, step: Callable[[str], None]
) -> tuple[dict[MetricKey, Array], dict[MetricKey, tuple[int, int]]]:
    """Return the claims and the fewest questions of metrics that rest on both directions."""
    answers, metrics = data.answers, directed()
    n_replicates, seed = settings.n_replicates, settings.seed
    kept = defining(metrics[0], data.kept)  # the same for all metrics
    parts = {number: data.kept[number].part for number in kept}
    keys = [
        MetricKey(c, "contrast", metric) for c in settings.conditionings for metric in metrics
    ]
    shape = (len(answers.rows), n_replicates)
    if not parts:
        return {key: np.full(shape, np.nan) for key in keys}, {}
    counts = [(part.n_first, part.n_second) for part in parts.values()]
    fewest = min(counts, key=min)
    in_groups = (draws.count_groups(part, answers.groups) for part in parts.values())
    if min(map(min, in_groups)) < settings.min_direction:
        log.warning(
            "A pair of checkpoints gains %d and loses %d questions: fewer than %d of either "
            "give no interval and no test of %s. Ask more questions.",
            *fewest,
            settings.min_direction,
            ", ".join(METRICS[metric].heading for metric in metrics),
        )
        return {key: np.full(shape, np.nan) for key in keys}, dict.fromkeys(keys, fewest)
    claims = {key: np.zeros(shape) for key in keys}
    asked = np.unique(np.concatenate([part.questions for part in parts.values()]))
    largest = max(part.size for part in parts.values())
    sets = f"{counts} {asked.tolist()}"
    pseudo = {
        expected: {
            member: draws.pseudo_weights(
                (*member, sets), n_replicates, seed=seed, expected=expected
            )
            for member in answers.rows
        }
        for expected in {METRICS[metric].pseudo for metric in metrics}
    }
    for block in blocks(n_replicates, 8 * (3 * len(asked) + 2 * largest)):
        columns = slice(block.start, block.stop)
        weights = draws.question_weights(answers.groups, asked, block, seed=seed)
        drawn = {
            expected: np.stack(
                [by_member[series.member][:, columns] for series in answers.confidence], axis=1
            )
            for expected, by_member in pseudo.items()
        }
        for number, part in parts.items():
            part_weights = weights[np.searchsorted(asked, part.questions)]
            sizes = draws.group_sizes(part, answers.groups)
            values: dict[str, Array] = {}
            for conditioning in settings.conditionings:
                needed = not_computed(metrics, values)
                runs = data.rated(conditioning)[number].runs
                values |= replicate_runs(runs, part, part_weights, drawn, sizes, chosen=needed)
                for metric, run_values in values.items():
                    key = MetricKey(conditioning, "contrast", metric)
                    claims[key][:, columns] += mean_over_seeds(run_values, answers) / len(parts)
        step(f"{block.stop:,} of {n_replicates:,} replicates of changes{UNFINISHED}")
    return claims, dict.fromkeys(keys, fewest)


def mean_over_seeds(run_values: Array, answers: AnswerArrays) -> Array:
    """Average rows, one per series, over the series of each estimator."""
    return np.array([run_values[numbers].mean(axis=0) for numbers in answers.rows.values()])


def _between_seeds(run_values: Array, answers: AnswerArrays) -> Array:
    """Return the variance of rows, one per series, over the series of each estimator."""
    several = (run_values[numbers] for numbers in answers.rows.values())
    return np.array([o.var(axis=0, ddof=1) if len(o) > 1 else 0 * o[0] for o in several])


def noise_of_seeds(observed: Array, drawn: Array) -> float:
    """Return the variance between seeds that comes from the questions, 0 for one seed.

    `observed`, (n_seeds,), are values on the data, and `drawn`, (n_seeds, n_replicates), on
    replicates, whose variance between seeds is larger by this amount.
    """
    if len(observed) < 2:
        return 0.0
    return max(0.0, float(drawn.var(axis=0, ddof=1).mean() - observed.var(ddof=1)))


class UnpairedError(ValueError):
    """Estimators were resampled from other answers, or with another seed."""


def digest_of_draws(data: Aligned, settings: EvaluationSettings) -> str:
    """Return a digest of all that decides which questions are drawn, and nothing else."""
    answers = data.answers
    keys = ("min_contrast", "min_direction", "n_replicates", "seed", "pairs")
    drawn = [*answers.checkpoints, *(getattr(settings, key) for key in keys)]
    digest = hashlib.sha256(f"{drawn}\n{answers.questions.tolist()}".encode())
    digest.update(answers.correct.tobytes() + answers.groups.tobytes())
    return digest.hexdigest()[:16]


def to_table(replicates: Replicates, drawn: str) -> pd.DataFrame:
    """Return the rows of the table REPLICATES, a row per estimator and metric."""
    rows = []
    for key, columns in replicates.replicated.items():
        n_effective = replicates.n_effective[key]
        counts = replicates.fewest.get(key, (None, None))
        claims = replicates.claims.get(key)
        for i, estimator in enumerate(replicates.estimators):
            by_seed = replicates.by_seed[key][i]
            claimed = [] if claims is None else claims[i]
            values = replicates.observed[key][i], columns[i], claimed
            seeds = [*by_seed], [*by_seed.values()], replicates.noise[key][i]
            rows.append((*estimator, *key, *values, *counts, drawn, *seeds, n_effective))
    return pd.DataFrame(rows, columns=[*MEMBER, *KEY, *VALUES])


def from_table(table: pd.DataFrame) -> Replicates:
    """Return the replicates of all estimators in rows of one or more tables REPLICATES.

    An UnpairedError lists replicates that were drawn differently.
    """
    by_draw = table.groupby("drawn")["estimator"].unique()
    if len(by_draw) > 1:
        sides = " and ".join(", ".join(map(repr, names)) for names in by_draw)
        raise UnpairedError(
            f"Replicates of {sides} were drawn from other answers, so they cannot be compared "
            "in pairs; run evaluate_estimator again for all of them."
        )
    estimators = [*table[MEMBER].drop_duplicates().itertuples(index=False, name=None)]
    columns: tuple[dict[MetricKey, Any], ...] = ({}, {}, {}, {}, {}, {}, {})
    observed, replicated, by_seed, noise, n_effective, claims, fewest = columns
    for labels, rows in table.groupby(KEY, sort=False):
        key = MetricKey(*map(str, labels))
        members = [*rows[MEMBER].itertuples(index=False, name=None)]
        by_estimator = rows.iloc[[members.index(estimator) for estimator in estimators]]
        observed[key] = by_estimator["value"].to_numpy()
        replicated[key] = np.stack(by_estimator["replicates"].to_list())
        pairs = zip(by_estimator["seeds"], by_estimator["by_seed"], strict=True)
        by_seed[key] = [dict(zip(map(int, s), map(float, v), strict=True)) for s, v in pairs]
        noise[key] = by_estimator["noise"].to_numpy()
        n_effective[key] = float(by_estimator["n_effective"].iloc[0])
        if METRICS[key.metric].has_interval:
            claims[key] = np.stack(by_estimator["claims"].to_list())
        counts = by_estimator[["improvement", "regression"]].iloc[0]
        if METRICS[key.metric].both_directions and counts.notna().all():
            fewest[key] = int(counts["improvement"]), int(counts["regression"])
    return Replicates(estimators, *columns)

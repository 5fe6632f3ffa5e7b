"""All metrics of one model and dataset, under any counts of questions, and of each pair."""

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import MEMBER, Aligned, rate
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import Component, Counts
from persistcal.evaluation.metrics.registry import (
    METRICS,
    Mean,
    MetricKey,
    Scope,
    names,
)
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, Array
from persistcal.evaluation.settings import Conditioning, EvaluationSettings
from persistcal.evaluation.weighted import balanced_gap, in_threads, mean_gap
from persistcal.store.artifacts import MIN_CONTRAST, PAIRS

log = logging.getLogger(__name__)


def count_once(part: Component) -> Counts:
    """Count every question of a component once, which gives the metrics of the data."""
    return np.ones((part.size, 1), np.uint8)


def metrics_under(
    counts_of: Callable[[Component], Counts],
    data: Aligned,
    conditionings: Sequence[Conditioning],
    *,
    metrics: Collection[str] = METRICS,
) -> dict[MetricKey, Array]:
    """Compute the metrics of every run under every column of multiplicities.

    `counts_of` returns the counts of a component, (n_questions, n_columns): `count_once` or
    `draws.count_draws`. The values have the shape (n_runs, n_columns), NaN where undefined.
    Full-set metrics have the conditioning "odds", though they do not depend on it. Contrast
    metrics are unweighted means over the contrast sets that define them, which replicates share
    with the data.
    """
    pooled = pool(counts_of, data.parts)
    shape = (len(data.on_full), pooled.shape[1])
    full_values = compute("full", data.on_full, pooled, chosen=metrics)
    del pooled
    values = {MetricKey("odds", "full", name): value for name, value in full_values.items()}
    on_contrast = [name for name in names("contrast") if name in metrics]
    among = {metric: defining(metric, data.kept) for metric in on_contrast}
    for conditioning in conditionings:
        for metric, defined in among.items():
            start = 0.0 if defined else np.nan
            values[MetricKey(conditioning, "contrast", metric)] = np.full(shape, start)
    for number, pair in enumerate(data.kept):
        counts = counts_of(pair.part)
        pair_values: dict[str, Array] = {}
        for conditioning in conditionings:
            needed = [
                metric
                for metric in metrics
                if METRICS[metric].conditioned or metric not in pair_values
            ]
            runs = data.rated(conditioning)[number].runs
            pair_values |= compute("contrast", runs, counts, chosen=needed)
            for metric, value in pair_values.items():
                if number in among[metric]:
                    key = MetricKey(conditioning, "contrast", metric)
                    values[key] += value / len(among[metric])
    return values


def compute(
    scope: Scope, runs: Sequence[Any], weights: NDArray, *, chosen: Collection[str] = METRICS
) -> dict[str, Array]:
    """Compute the metrics of a scope of several runs on the same questions.

    `runs` are `FullSet` or `OnContrastSet`. The values have the shape (n_runs, n_columns).
    """
    metrics = {name: METRICS[name] for name in names(scope) if name in chosen}
    values = {
        name: np.array(
            in_threads(
                partial(getattr(metric, scope), weights=weights), runs, size=weights.size
            )
        )
        for name, metric in metrics.items()
        if not isinstance(metric, Mean)
    }
    means = {name: metric for name, metric in metrics.items() if isinstance(metric, Mean)}
    for balanced in {mean.balanced for mean in means.values()}:
        alike = {name: mean for name, mean in means.items() if mean.balanced == balanced}
        rows = np.array([mean.values(run, scope) for mean in alike.values() for run in runs])
        if balanced:
            averages = balanced_gap(rows, runs[0].improvement, weights=weights)
        else:
            averages = mean_gap(rows, weights=weights)
        values |= zip(alike, np.split(averages, len(alike)), strict=True)
    return {name: values[name] for name in metrics}


def defining(metric: str, sets: Sequence[ContrastSet]) -> list[int]:
    """Return which contrast sets define a metric: some need gained and lost questions."""
    needs_both = METRICS[metric].both_directions
    return [
        number
        for number, pair in enumerate(sets)
        if (pair.has_both_directions if needs_both else pair.counts.changed)
    ]


def mean_over_seeds(run_values: Array, answers: AnswerArrays) -> Array:
    """Average rows, one per series, over the series of each estimator."""
    return np.array([run_values[numbers].mean(axis=0) for numbers in answers.rows.values()])


def pool(counts_of: Callable[[Component], Counts], parts: Sequence[Component]) -> Counts:
    """Stack the counts of components, one at a time to save memory."""
    first = counts_of(parts[0])
    stack = np.empty((sum(part.size for part in parts), first.shape[1]), np.uint8)
    stack[: len(first)] = first
    start = len(first)
    del first
    for part in parts[1:]:
        stack[start : start + part.size] = counts_of(part)
        start += part.size
    return stack


def evaluate(data: Aligned, settings: EvaluationSettings) -> pd.DataFrame:
    """Return all metrics of every estimator.

    The result has the columns of the table METRICS but for model and dataset: a row per seed
    and one with seed "mean". Contrast metrics are unweighted means over the kept contrast sets
    of at least `min_contrast` questions on which they are defined, and `pairs` counts these
    sets ("1 of 3"; empty for scope "full"). A metric that is undefined on all sets is NaN, with
    a warning that gives the reason.
    """
    answers = data.answers
    warn_of_undefined(answers, data.sets, settings)
    values = metrics_under(count_once, data, settings.conditionings)
    n_defining = {
        key: f"{len(defining(key.metric, data.kept))} of {len(data.kept)}"
        if key.scope == "contrast"
        else ""
        for key in values
    }
    columns = ["train_dataset", "estimator", "conditioning", "scope", "metric"]
    per_seed = pd.DataFrame(
        [
            (*series.member, *key, series.seed, run_values[number, 0], n_defining[key])
            for number, series in enumerate(answers.confidence)
            for key, run_values in values.items()
        ],
        columns=[*columns, "seed", "value", "pairs"],
    )
    by_member = per_seed.groupby([*columns, "pairs"], sort=False)["value"]
    means = by_member.agg(lambda v: v.mean(skipna=False)).reset_index().assign(seed="mean")
    per_seed = per_seed.astype({"seed": str})
    return pd.concat([per_seed, means], ignore_index=True)


def warn_of_undefined(
    answers: AnswerArrays, sets: Sequence[ContrastSet], settings: EvaluationSettings
) -> None:
    """Log a warning for each reason why metrics are going to be NaN."""
    labels = answers.correct[answers.correct != ABSENT]
    if len(np.unique(labels)) == 1:
        positions = np.argwhere(answers.correct != ABSENT)[:3]
        log.warning(
            "All %d answers are %s (first: %s): the full-set AUC is undefined and NaN.",
            len(labels),
            "correct" if labels[0] else "incorrect",
            ", ".join(
                f"{answers.questions[q]} at {answers.checkpoints[k]}" for k, q in positions
            ),
        )
    names = [
        f"{answers.checkpoints[s.earlier]} and {answers.checkpoints[s.later]}" for s in sets
    ]
    pairs = list(zip(names, sets, strict=True))
    if not any(pair.kept for pair in sets):
        sizes = "; ".join(f"{name}: {len(pair.questions)}" for name, pair in pairs)
        log.warning(
            "No pair of checkpoints has a contrast set of at least %d questions (%s): every "
            "contrast metric is undefined and NaN.",
            settings.min_contrast,
            sizes or "there is only one checkpoint",
        )
    for name, pair in pairs:
        if pair.kept and not pair.has_both_directions:
            log.warning(
                "All %d questions in the contrast set of %s are %s (first: %s): the balanced Δ "
                "metrics are undefined there, and means over the other pairs. Ask more "
                "questions, or name the pairs that are compared.",
                len(pair.questions),
                name,
                "improvements" if len(pair.gained) else "regressions",
                ", ".join(str(q) for q in answers.questions[pair.questions[:3]]),
            )


def metrics_of_pairs(data: Aligned) -> pd.DataFrame:
    """Return the metrics of every contrast set: the table PAIRS but for model and dataset.

    `evaluate` averages these metrics over the kept pairs, without weights. `distance` counts
    positions among the checkpoints, `size` questions; `value`, conditioned by odds, is the mean
    over seeds, NaN where undefined.
    """
    rows, checkpoints = [], data.answers.checkpoints
    for pair in data.sets:
        once = count_once(pair.part)
        ends = checkpoints[pair.earlier], checkpoints[pair.later], pair.later - pair.earlier
        for estimator, seeds in data.answers.estimators.items():
            values = {metric: np.array([np.nan]) for metric in names("contrast")}
            if pair.counts.changed:
                values = compute("contrast", rate(pair, seeds).runs, once)
            for metric, seed_values in values.items():
                counts = *pair.counts, pair.kept
                rows.append((*estimator, *ends, *counts, metric, seed_values.mean()))
    return pd.DataFrame(rows, columns=PAIRS.but("model", "dataset"))


def sweep_min_contrast(pairs: pd.DataFrame, *, chosen: int) -> pd.DataFrame:
    """Return the contrast metrics for each value of `min_contrast` that changes the kept pairs.

    The result is the table MIN_CONTRAST but for model and dataset. `min_contrast` takes the
    sizes of the contrast sets, because other values keep the same pairs. `kept` counts the
    pairs of at least this size, `pairs` the pairs on which the metric is defined ("1 of 3"),
    and `value` is the mean over these. In the result `chosen` is True if the study's
    `min_contrast`, the argument `chosen`, keeps the same pairs.
    """
    rows = []
    sizes = sorted({int(size) for size in pairs["size"] if size})
    size_limit = min((size for size in sizes if size >= chosen), default=None)
    columns = ["size", "value", "improvement", "regression", "earlier", "later"]
    by_series = {
        series: [group[name].to_numpy() for name in columns]
        for series, group in pairs.groupby([*MEMBER, "metric"], sort=False)
    }
    for least, (series, group) in product(sizes, by_series.items()):
        if (large := group[0] >= least).any():
            value, gained, lost, *ends = (column[large] for column in group[1:])
            defined = value[~np.isnan(value)]
            kept = ", ".join(f"{a}–{b}" for a, b in zip(*ends, strict=True))
            share = f"{len(defined)} of {len(value)}"
            mean = defined.mean() if len(defined) else np.nan
            counts = int(gained.sum()), int(lost.sum())
            rows.append((*series, least, *counts, kept, share, mean, least == size_limit))
    return pd.DataFrame(rows, columns=MIN_CONTRAST.but("model", "dataset"))

"""Values and replicates of all metrics of a scope at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.draws import Component
from persistcal.evaluation.metrics.registry import METRICS, Mean, Scope, names
from persistcal.evaluation.predictions import Array
from persistcal.evaluation.runs import OnContrastSet
from persistcal.evaluation.weighted import balanced_gap, mean_gap


def compute(
    scope: Scope,
    runs: Sequence[Any],
    weights: NDArray,
    *,
    chosen: Collection[str] = METRICS,
) -> dict[str, Array]:
    """Compute the metrics of a scope of several runs on the same questions.

    `runs` are `FullSet` or `OnContrastSet`. The values have the shape (n_runs, n_columns).
    """
    metrics = {name: METRICS[name] for name in names(scope) if name in chosen}
    values = {
        name: np.array([getattr(metric, scope)(run, weights) for run in runs])
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


def replicate_runs(
    runs: Sequence[OnContrastSet],
    part: Component,
    weights: Array,
    pseudo: Mapping[float, Array],
    sizes: tuple[float, float] = (1.0, 1.0),
) -> dict[str, Array]:
    """Return the replicates, (n_runs, n_replicates), of each metric of both directions.

    `pseudo` has the weights of pseudo-questions by their expected value, and `sizes` the mean
    sizes of groups.
    """
    return {
        name: metric.weighted(runs, part.is_first, weights, pseudo[metric.pseudo], sizes)
        for name, metric in METRICS.items()
        if metric.both_directions
    }

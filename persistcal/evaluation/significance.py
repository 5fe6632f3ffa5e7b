"""The best estimator of each comparison block against the others, on each metric."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.arrange import PredictionsError
from persistcal.evaluation.measures import MEASURES
from persistcal.evaluation.noise_floor import FLOOR
from persistcal.evaluation.proportions import DECIMALS, compare_replicates
from persistcal.evaluation.recipes import BySeed, recipe_interval
from persistcal.evaluation.replicates import Estimator, Replicates
from persistcal.evaluation.simultaneous import compare_estimators
from persistcal.store.artifacts import INTERVALS, SIGNIFICANCE

log = logging.getLogger(__name__)

BOUNDS = dict.fromkeys(["auc", "change_auc"], (0.0, 1.0)) | dict.fromkeys(
    ["delta0_balanced", "delta0", "delta_balanced", "delta"], (-1.0, 1.0)
)


def intervals(replicates: Replicates) -> pd.DataFrame:
    """Give each metric of each estimator its 95 % intervals: over questions, and seeds too.

    Returns
    -------
    DataFrame
        Columns of the table INTERVALS but for model and dataset. The first interval is of
        percentiles over questions, the second that of `persistcal.evaluation.recipes`. Both are
        NaN if the metric is undefined or has no valid interval, if it does not vary (a constant
        confidence has a Δ₀ᵇ of exactly 0), or if a pair gains or loses too few questions for
        it. The noise floor and `p_calibrated` are left to `persistcal.evaluation.noise_floor`.
    """
    rows = []
    for key, values in replicates.observed.items():
        counts = replicates.fewest.get(key, (None, None))
        replicated = replicates.for_claims(key)
        ends = np.quantile(replicated, [0.025, 0.975], axis=1)
        has_width = np.round(ends[1] - ends[0], DECIMALS) > 0
        low, high = np.where(has_width, ends, np.nan)
        for i, member in enumerate(replicates.estimators):
            of_seeds = [replicates.by_seed[key][i]]
            noise = replicates.noise[key][i]
            drawn = replicated[i]
            recipe = recipe_interval(values[i], drawn, of_seeds, noise, BOUNDS.get(key[2]))
            rows.append((*member, *key, values[i], low[i], high[i], *recipe[:3], *counts))
    columns = [name for name in INTERVALS.but("model", "dataset") if name not in FLOOR]
    table = pd.DataFrame(rows, columns=columns).assign(**dict.fromkeys(FLOOR, np.nan))
    return table.astype({"improvement": "Int64", "regression": "Int64"})


def compare_blocks(
    replicates: Replicates, blocks: Mapping[str, Sequence[str | Estimator]]
) -> pd.DataFrame:
    """Test, metric by metric, the best estimator of each block against the others.

    Parameters
    ----------
    blocks : mapping of str to sequence of str or (train_dataset, estimator)
        The estimators that are compared with each other, by the block's name.
        A name alone will do when only one training dataset has the estimator.

    Returns
    -------
    DataFrame
        Columns of the table SIGNIFICANCE but for model and dataset; a row per block, metric and
        estimator that is not the best; the train_dataset is that of `other`. With d = best −
        other, or other − best where lower is better (Brier score, SmoothECE), `difference` is
        the observed d, and `lower_5pct`, `lower_2_5pct` and `upper_97_5pct` are quantiles of d
        over replicates. `significant` is whether `lower_5pct` is above 0: the paper's one-sided
        test, for the marks in its tables. `p_value` is two-sided, and `p_holm` adjusts it for
        the rows of the same block, conditioning, scope and metric. These columns do not take
        into account that the best was chosen from the same data. The others do, see
        `persistcal.evaluation.simultaneous`: the simultaneous interval of d, `p_adjusted`, and
        `in_best_set`, whether no estimator of the block is above `other`; it is missing without
        a test. `n_seeds` and the columns that begin with `seeds` include the variation between
        training seeds, see `persistcal.evaluation.recipes`. The first of several best is taken.
        A metric that is undefined for the whole block has no rows, and a warning; the columns
        of an undefined `other` are NaN.
    """
    rows = []
    for block, members in blocks.items():
        names = [_member(name, replicates.estimators, block) for name in members]
        index = [replicates.estimators.index(name) for name in names]
        for key, values in replicates.observed.items():
            conditioning, scope, metric = key
            sign = -1 if MEASURES[metric].lower_is_better else 1
            # rounded, so that what is equal but for the order of summation is equal
            data = np.round(sign * values[index], DECIMALS)
            drawn, claimed = (
                np.round(sign * replicated[index], DECIMALS)
                for replicated in (replicates.replicated[key], replicates.for_claims(key))
            )
            if np.isnan(data).all():
                log.warning(
                    "Block %s has no test of %s %s (%s): it is undefined for all estimators.",
                    block,
                    scope,
                    metric,
                    conditioning,
                )
                continue
            best = int(np.nanargmax(data))
            others = [i for i in range(len(names)) if i != best]
            sides = [
                {number: sign * value for number, value in replicates.by_seed[key][i].items()}
                for i in index
            ]
            noise = replicates.noise[key][index]
            tests = [
                _compare(
                    data[best] - data[i],
                    drawn[best] - drawn[i],
                    claimed[best] - claimed[i],
                    [sides[best], sides[i]],
                    max(noise[best], noise[i]),
                )
                for i in others
            ]
            adjusted = holm([test["p_value"] for test in tests])
            together = compare_estimators(replicates, index, key)
            is_tested = ~np.isnan(together.difference)
            rows += [
                {
                    "train_dataset": names[i][0],
                    "block": block,
                    "conditioning": conditioning,
                    "scope": scope,
                    "metric": metric,
                    "best": names[best][1],
                    "other": names[i][1],
                    **test,
                    "p_holm": p,
                    "simultaneous_lower": together.lower[best, i],
                    "simultaneous_upper": together.upper[best, i],
                    "p_adjusted": together.p_adjusted[best, i],
                    "in_best_set": bool(together.in_best_set[i])
                    if is_tested[best, i]
                    else None,
                }
                for i, test, p in zip(others, tests, adjusted, strict=True)
            ]
    return pd.DataFrame(rows, columns=SIGNIFICANCE.but("model", "dataset"))


def _member(name: str | Estimator, estimators: Sequence[Estimator], block: str) -> Estimator:
    matches = [e for e in estimators if name in (e, e[1])]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(
        f"{estimator} (trained on {dataset})" for dataset, estimator in estimators
    )
    problem = "is not in the predictions" if not matches else "has several training datasets"
    raise PredictionsError(
        f"Estimator {name} of block {block!r} {problem}, which hold: {known}."
    )


def _compare(
    difference: float,
    stratified: NDArray[np.float64],
    claimed: NDArray[np.float64],
    sides: Sequence[BySeed],
    noise: float,
) -> dict[str, float | bool]:
    lower = low = high = np.nan
    if not np.isnan(stratified).any():
        lower = np.quantile(stratified, 0.05)
    if not np.isnan(claimed).any():
        low, high = np.quantile(claimed, [0.025, 0.975])
    p = compare_replicates(0.0, difference, claimed).p_value
    recipe = recipe_interval(difference, claimed, sides, noise)
    return {
        "difference": difference,
        "lower_5pct": lower,
        "significant": bool(lower > 0),
        "lower_2_5pct": low,
        "upper_97_5pct": high,
        "p_value": p,
        "n_seeds": recipe.n_seeds,
        "seeds_lower_2_5pct": recipe.lower,
        "seeds_upper_97_5pct": recipe.upper,
        "seeds_p_value": recipe.p_value,
    }


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Adjust p-values for their number by Holm's method; NaN stay and are not counted.

    References
    ----------
    .. [1] Holm, "A simple sequentially rejective multiple test procedure",
       Scandinavian Journal of Statistics 1979.

    Examples
    --------
    3 x 0.01; then 2 x 0.02; then 0.03, but not less than the one before:

    >>> holm([0.01, 0.03, 0.02])
    array([0.03, 0.04, 0.04])
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)[: np.sum(~np.isnan(p))]  # NaN are sorted last
    adjusted = np.full(len(p), np.nan)
    scaled = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


def holm_over_tables(tests: pd.DataFrame) -> pd.DataFrame:
    """Adjust p-values for all tests of the same metric, whatever their model and dataset.

    `tests` has each test once. One that two blocks share counts for both, which is on the safe
    side.
    """
    families = tests.groupby(["conditioning", "scope", "metric"], sort=False)["p_value"]
    return tests.assign(p_holm=families.transform(lambda p: holm(p.to_list())))

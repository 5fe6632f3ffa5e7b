"""Metrics of each pair of checkpoints, and how they change with the distance of the two."""

from collections.abc import Sequence

import pandas as pd

from persistcal.evaluation.arrange import arrange
from persistcal.evaluation.contrast import Pairs, choose_pairs, contrast_sets
from persistcal.evaluation.draws import component
from persistcal.evaluation.prepared import on_contrast_set, once
from persistcal.evaluation.scopes import CONTRAST_METRICS, compute

METRICS = ("delta0_balanced", "auc")


def metrics_of_pairs(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Return the metrics of every contrast set that is kept, one by one.

    Parameters
    ----------
    predictions, checkpoints, min_contrast, pairs
        As in `persistcal.evaluation.evaluate.evaluate`, whose contrast metrics are the
        unweighted means of these over pairs.

    Returns
    -------
    DataFrame
        Columns `train_dataset`, `estimator`, `earlier`, `later`, `distance` (positions
        between the two among `checkpoints`), `size` (questions), `metric` (Δ₀ᵇ, or AUC
        conditioned by odds) and `value`: the mean over seeds, NaN where undefined.
    """
    answers = arrange(predictions, checkpoints)
    chosen = {metric: CONTRAST_METRICS[metric] for metric in METRICS}
    rows = []
    for pair in contrast_sets(
        answers.correct, min_contrast=min_contrast, pairs=choose_pairs(pairs, checkpoints)
    ):
        if not pair.kept:
            continue
        part = component(pair.questions, pair.improvement)
        weights = once(part)
        place = checkpoints[pair.earlier], checkpoints[pair.later], pair.later - pair.earlier
        for estimator, seeds in answers.estimators.items():
            runs = [on_contrast_set(run, pair, part, "odds") for run in seeds]
            for metric, values in compute(chosen, runs, weights).items():
                rows.append((*estimator, *place, len(pair.questions), metric, values.mean()))
    names = ["train_dataset", "estimator", "earlier", "later", "distance", "size"]
    return pd.DataFrame(rows, columns=[*names, "metric", "value"])

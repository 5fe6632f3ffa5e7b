"""Tables of predictions in, differences between checkpoints and between models out."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from persistcal.api.inputs import blocks, settings, whole_number
from persistcal.evaluation import comparisons
from persistcal.evaluation.contrast import Pairs
from persistcal.store.artifacts import STATES, TRENDS


class StateComparison(NamedTuple):
    """Which checkpoint is better, and by how much.

    Attributes
    ----------
    states : DataFrame
        A row per pair, metric, estimator and seed: model, other_model, dataset, earlier, later,
        estimator, metric, seed, earlier_value, later_value, difference (later − earlier),
        lower_2_5pct, upper_97_5pct, p_value and p_holm.
    trends : DataFrame
        Of more than two checkpoints the slope of each metric along their order: model, dataset,
        estimator, metric, seed, n_checkpoints, slope, lower_2_5pct, upper_97_5pct and p_value.
    """

    states: pd.DataFrame
    trends: pd.DataFrame


def compare_states(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    pairs: Pairs = "all",
    n_replicates: int = 10_000,
    seed: int = 17,
) -> StateComparison:
    """Compare the checkpoints of each model, and the last ones of each two models.

    Accuracies are compared by McNemar's exact test, with Newcombe's interval; AUC, Brier score
    and SmoothECE of each estimator on all questions by the paired bootstrap. The numbers are
    those of the workflow with the same settings.

    Parameters
    ----------
    predictions : DataFrame
        As for `persistcal.evaluate`.
    checkpoints : sequence of str
        Evaluation checkpoints of every model, earliest first.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str), default="all"
        The pairs of checkpoints that are compared.
    n_replicates : int, default=10000
        Bootstrap replicates.
    seed : int, default=17
        Of the bootstrap.

    Returns
    -------
    StateComparison
        Tables `states` and `trends`. Two states are compared on the questions that both
        answered; pairs without one are left out, with a warning.
    """
    names, how = settings(checkpoints, 1, pairs)
    bootstrap = {
        "pairs": how["pairs"],
        "n_replicates": whole_number("n_replicates", n_replicates),
        "seed": whole_number("seed", seed, least=0),
    }
    by_dataset: dict[str, dict[str, pd.DataFrame]] = {}
    for place, rows in blocks(predictions):
        by_dataset.setdefault(place["dataset"], {})[place["model"]] = rows
    made = [
        comparisons.compare_states(
            by_model, dict.fromkeys(by_model, names), dataset=dataset, **bootstrap
        )
        for dataset, by_model in by_dataset.items()
    ]
    states, trends = (pd.concat(parts, ignore_index=True) for parts in zip(*made, strict=True))
    return StateComparison(states[STATES.schema.names], trends[TRENDS.schema.names])

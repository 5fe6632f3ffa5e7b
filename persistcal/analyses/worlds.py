"""Mean and spread of metrics over models that differ in the seed of their pre-training."""

from collections.abc import Mapping, Sequence

import pandas as pd


def spread_over_worlds(
    metrics: pd.DataFrame, worlds: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Summarise each metric over the worlds of a model: the table WORLDS.

    Rows of conditioning "odds" and seed "mean" count. The standard deviation is that with n -
    1; all are NaN where the metric is undefined in one of the `worlds`, models by the name that
    they share.

    >>> key = {"dataset": "d", "train_dataset": "d", "estimator": "e", "conditioning": "odds",
    ...        "scope": "full", "metric": "auc", "seed": "mean"}
    >>> rows = pd.DataFrame([{"model": "m-1", "value": 0.5, **key},
    ...                      {"model": "m-2", "value": 0.7, **key}])
    >>> spread_over_worlds(rows, {"m": ["m-1", "m-2"]})[["mean", "sd"]].round(3)
       mean     sd
    0   0.6  0.141
    """
    chosen = metrics[(metrics["conditioning"] == "odds") & (metrics["seed"] == "mean")]
    name_of = {model: name for name, models in worlds.items() for model in models}
    if lost := [model for model in name_of if model not in set(chosen["model"])]:
        raise ValueError(f"no metrics of model {lost[0]!r}")
    chosen = chosen[chosen["model"].isin(name_of)]
    key = ["world_of", "dataset", "train_dataset", "estimator", "scope", "metric"]
    named = chosen.assign(world_of=chosen["model"].map(name_of))
    values = named.groupby(key, sort=False)["value"]
    return pd.DataFrame(
        {
            "mean": values.mean(skipna=False),
            "sd": values.std(skipna=False),
            "least": values.min(skipna=False),
            "greatest": values.max(skipna=False),
            "n": values.size(),
        }
    ).reset_index()

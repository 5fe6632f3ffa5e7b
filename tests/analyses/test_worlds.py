"""Mean and spread over pre-trainings, counted by hand."""

import pandas as pd
import pytest
from summarise_worlds import summarise_worlds

from persistcal.analyses.worlds import spread_over_worlds

VALUES = {"m-1": 0.2, "m-2": 0.5, "m-3": 0.8, "other": 0.9}
COLUMNS = [
    ("contrast", "delta0_balanced"),
    ("contrast", "auc"),
    ("contrast", "brier"),
    ("full", "auc"),
    ("full", "brier"),
    ("full", "smece"),
]


def metrics():
    rows = [
        {
            "model": model,
            "dataset": "d",
            "train_dataset": "d",
            "estimator": "e",
            "conditioning": conditioning,
            "scope": scope,
            "metric": metric,
            "seed": seed,
            "value": value if (seed, conditioning) == ("mean", "odds") else 0.0,
            "pairs": "",
        }
        for model, value in VALUES.items()
        for conditioning in ("odds", "fitted")
        for seed in ("17", "mean")
        for scope, metric in COLUMNS
    ]
    return pd.DataFrame(rows)


def test_spread():
    rows = spread_over_worlds(metrics(), {"m": ["m-1", "m-2", "m-3"]})
    assert len(rows) == len(COLUMNS)
    first = rows.iloc[0]
    # Mean of .2, .5 and .8; their squared distances are .09, 0 and .09, so sd = sqrt(.18 / 2).
    assert first["mean"] == pytest.approx(0.5)
    assert first["sd"] == pytest.approx(0.3)
    assert (first["least"], first["greatest"], first["n"]) == (0.2, 0.8, 3)
    assert first["world_of"] == "m"


def test_undefined_in_one_world():
    lost = metrics()
    lost.loc[(lost["model"] == "m-2") & (lost["metric"] == "brier"), "value"] = None
    rows = spread_over_worlds(lost, {"m": ["m-1", "m-2"]}).set_index(["scope", "metric"])
    assert rows.loc[("full", "brier"), ["mean", "sd", "least", "greatest"]].isna().all()
    assert rows.loc[("full", "auc"), "mean"] == pytest.approx(0.35)


def test_script():
    how = {
        "names": {"m": "Model"},
        "labels": {"datasets": {"d": "Quiz"}, "estimators": {"e": "Guess & go"}},
    }
    text, rows = summarise_worlds(metrics(), worlds={"m": ["m-1", "m-3"]}, **how)
    assert set(rows["n"]) == {2}
    # .2 and .8: sd = .6 / sqrt(2)
    assert r"Guess \& go & 0.500 $\pm$ 0.424 & " in text
    with pytest.raises(ValueError, match="no metrics of model 'm-9'"):
        summarise_worlds(metrics(), worlds={"m": ["m-1", "m-9"]}, **how)

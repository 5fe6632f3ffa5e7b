"""Confidence: the value in a user's file."""

import json

import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence
from persistcal.confidence.uncertainty import grouped


def stated(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean of the confidences that were stated with each prediction.

    The mean is over all samples or beams in the prediction's cluster, without missing values.
    If all are missing, the confidence is missing.
    """
    rows = grouped(answers, evidence)
    stated = rows["stated"].map(json.loads, na_action="ignore")
    values = stated.map(
        lambda mapping: mapping.get(evidence.estimator), na_action="ignore"
    ).astype(float)
    mean = rows.assign(said=values)[rows["cluster"] == 0].groupby(KEY)["said"].mean()
    matched = mean.reindex(pd.MultiIndex.from_frame(answers[KEY]))
    return matched.set_axis(answers.index).astype("Float64")

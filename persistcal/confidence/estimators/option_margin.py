"""Confidence: probability of the chosen option minus the next one's."""

import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence

NEEDS = ("several_answers",)


def option_margin(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the difference between the two greatest probabilities.

    Scheffer, Decomain and Wrobel, "Active Hidden Markov Models for Information
    Extraction", IDA 2001: the margin.
    """
    seconds = evidence.clusters.loc[evidence.clusters["cluster"] == 1, [*KEY, "probability"]]
    runner_up = answers[KEY].merge(seconds, how="left", on=KEY)["probability"].fillna(0)
    return (answers["probability"] - runner_up.to_numpy()).clip(0, 1)

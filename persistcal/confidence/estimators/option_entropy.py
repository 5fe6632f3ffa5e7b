"""Confidence in a question: how far the options' probabilities are from equal ones."""

import numpy as np
import pandas as pd
from scipy.special import entr

from persistcal.confidence.evidence import KEY, Evidence

NEEDS = ("several_answers",)


def option_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one minus the options' entropy divided by the logarithm of their number.

    The division makes questions with different numbers of options comparable.
    """
    shares = evidence.clusters[[*KEY, "probability"]]
    shares = shares.assign(entropy=entr(shares["probability"]))
    totals = shares.groupby(KEY, sort=False)["entropy"].agg(["sum", "size"])
    confidence = 1 - totals["sum"] / np.log(totals["size"].clip(lower=2))
    asked = pd.MultiIndex.from_frame(answers[KEY])
    return pd.Series(confidence.loc[asked].to_numpy(), answers.index).clip(0, 1)

"""Confidence: probability of the least probable token."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "min_logprob")


def min_token_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the best beam's least probable token.

    Manakul, Liusie and Gales, "SelfCheckGPT", EMNLP 2023: exp of minus their Max(-log p).
    uqlm: min_probability.
    """
    return pd.Series(np.exp(own_beams(answers, evidence)["min_logprob"])).clip(upper=1)

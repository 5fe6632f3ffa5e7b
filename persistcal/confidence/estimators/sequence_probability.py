"""Confidence of an answer: the probability of its best beam as a sequence of tokens."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob",)


def sequence_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the best beam that says what the prediction says."""
    logprob = own_beams(answers, evidence)["logprob"]
    # Summed log-probabilities may pass 0 by a rounding error.
    return np.exp(logprob).clip(upper=1)

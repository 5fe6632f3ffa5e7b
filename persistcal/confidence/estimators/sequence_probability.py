"""Confidence: probability of the best beam with the answer."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob",)


def sequence_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the best beam with the prediction's text."""
    logprob = own_beams(answers, evidence)["logprob"]
    # Summed log-probabilities can exceed 0 by a rounding error.
    return np.exp(logprob).clip(upper=1)

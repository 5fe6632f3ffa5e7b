"""Confidence: probability of the chosen option."""

import pandas as pd

from persistcal.confidence.evidence import Evidence


def option_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the softmax of the chosen option's score over the options of its question."""
    # Summed floats can exceed 1 by a rounding error.
    return answers["probability"].clip(upper=1)

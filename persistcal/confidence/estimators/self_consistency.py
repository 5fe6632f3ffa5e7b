"""Confidence of an answer: the share of the beams' probability that means the same."""

import pandas as pd

from persistcal.confidence.evidence import Evidence

NEEDS = ("several_answers",)


def self_consistency(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of each prediction's cluster.

    Paper, section 3.1, and appendix "Self-Consistency Implementation".
    """
    # Summed floats can exceed 1 by a rounding error.
    return answers["probability"].clip(upper=1)

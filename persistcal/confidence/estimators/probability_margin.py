"""Confidence of an answer: by how much the likeliest token exceeds the next one."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "margin")


def probability_margin(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean difference between the two greatest probabilities, over tokens.

    The mean is over the tokens of the best beam.

    Farr et al., "RED-CT: A Systems Design Methodology for Using LLM-labeled Data to Train and
    Deploy Edge Classifiers for Computational Social Science", 2024, arXiv:2408.08217. uqlm:
    probability_margin.
    """
    return own_beams(answers, evidence)["margin"].clip(0, 1)

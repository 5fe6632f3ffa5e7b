"""Confidence of an answer: the probability that the checkpoint states in words."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.said import probability, rate_replies


def said_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean of the probabilities in the replies about each answer.

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: the numeric
    top-1 of two stages, because the answer is decoded first.
    """
    return rate_replies(answers, evidence, lambda reply, _: probability(reply))

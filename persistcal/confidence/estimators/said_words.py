"""Confidence of an answer: the probability of the expression that the checkpoint chooses."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.said import on_scale, rate_replies


def said_words(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean probability, on the estimator's scale, of the replies about each answer.

    With the scale ``{"True": 1, "False": 0}`` the result is the share of "True" among the
    replies with "True" or "False".

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: linguistic, with
    probabilities from people. Kadavath et al., "Language Models (Mostly) Know What They
    Know", 2022, arXiv:2207.05221: P(True), by samples.
    """
    assert evidence.scale is not None
    scale = evidence.scale
    return rate_replies(answers, evidence, lambda reply, _: on_scale(reply, scale))

"""Confidence: distance of the tokens' distributions from uniform."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "self_certainty")


def self_certainty(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return s / (1 + s) of the best beam's self-certainty s, which has no greatest value.

    Kang, Zhao and Song, "Scalable Best-of-N Selection for Large Language Models via
    Self-Certainty", 2025, arXiv:2502.18581. lm-polygraph: SelfCertainty.
    """
    certainty = own_beams(answers, evidence)["self_certainty"].clip(lower=0)
    return certainty / (1 + certainty)

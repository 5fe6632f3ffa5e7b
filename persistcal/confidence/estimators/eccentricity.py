"""Confidence: distance of the answers from their centre."""

import numpy as np
import pandas as pd

from persistcal.confidence import uncertainty
from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import jaccard, rate_candidates

NEEDS = ("several_answers",)


def eccentricity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the eccentricity of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    Eccentricity_Jaccard_score.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: np.exp(-uncertainty.eccentricity(jaccard(c.texts), c.weights)),
    )

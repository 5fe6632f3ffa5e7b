"""Confidence in a question: how similar two of the answers are."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import jaccard, mean_distance, rate_candidates

NEEDS = ("several_answers",)


def degree_matrix(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean Jaccard similarity of two answers, one minus the paper's U_Deg.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    DegMat_Jaccard_score.
    """
    return rate_candidates(
        answers, evidence, lambda c: 1 - mean_distance(jaccard(c.texts), c.weights)
    ).clip(0, 1)

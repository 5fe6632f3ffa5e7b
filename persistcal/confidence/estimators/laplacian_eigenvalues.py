"""Confidence in a question: a continuous number of meanings among the answers."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import jaccard, laplacian_sum, rate_candidates

NEEDS = ("several_answers",)


def laplacian_eigenvalues(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one over the sum of eigenvalues of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    EigValLaplacian_Jaccard_score.
    """
    # The sum is at least 1, up to rounding.
    return rate_candidates(
        answers, evidence, lambda c: 1 / max(1, laplacian_sum(jaccard(c.texts), c.weights))
    )

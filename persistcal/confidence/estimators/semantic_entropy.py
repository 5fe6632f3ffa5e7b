"""Confidence in a question: the entropy of the answers' meanings."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import group_entropy, rate_candidates

NEEDS = ("several_answers",)


def semantic_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the entropy of the clusters' probabilities.

    An empty answer is a separate meaning.

    Farquhar, Kossen, Kuhn and Gal, "Detecting Hallucinations in Large Language
    Models Using Semantic Entropy", Nature 2024: the discrete variant for samples
    (lm-polygraph: SemanticEntropyEmpirical), the variant by probability for beams.
    """
    return rate_candidates(
        answers, evidence, lambda c: np.exp(-group_entropy(c.groups, c.weights))
    )

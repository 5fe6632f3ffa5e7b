"""Confidence in a question: the Monte-Carlo entropy of the answers' meanings."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import group_sequence_entropy, rate_candidates

NEEDS = ("logprob", "several_answers")


def semantic_sequence_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the mean log-probability of the answers' clusters.

    Kuhn, Gal and Farquhar, "Semantic Uncertainty", ICLR 2023. A cluster has the
    probability of its distinct texts together. lm-polygraph: SemanticEntropyUnique.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: min(1.0, np.exp(-group_sequence_entropy(*c[:2], c[3], c[2]))),
    )

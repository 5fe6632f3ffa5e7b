"""Confidence in a question: the Monte-Carlo entropy of the answers' meanings."""

import numpy as np
import pandas as pd

from persistcal.confidence import uncertainty
from persistcal.confidence.candidates import rate_candidates
from persistcal.confidence.evidence import Evidence

NEEDS = ("logprob", "several_answers")


def semantic_sequence_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the mean log-probability of the answers' clusters.

    Notes
    -----
    Kuhn, Gal and Farquhar, "Semantic Uncertainty", ICLR 2023. A cluster has the
    probability of its distinct texts together. lm-polygraph: SemanticEntropyUnique.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: min(1.0, np.exp(-uncertainty.group_sequence_entropy(*c[:2], c[3], c[2]))),
    )

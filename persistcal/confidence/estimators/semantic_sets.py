"""Confidence in a question: the number of meanings among the answers."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import rate_candidates

NEEDS = ("several_answers",)


def semantic_sets(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one over the number of clusters; empty answers are one cluster.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    NumSemSets, which joins answers that entail more than they contradict each other.
    """
    return rate_candidates(answers, evidence, lambda c: 1 / len(np.unique(c.groups)))

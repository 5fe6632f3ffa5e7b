"""Confidence: the answer's probability times its agreement with other answers."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "several_answers")


def cocoa(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of the best beam's log-probability times the share that disagrees with it.

    An answer agrees if it is in the prediction's cluster.

    Vashurin et al., "Uncertainty Quantification for LLMs through Minimum Bayes
    Risk: Bridging Confidence and Consistency", 2025, arXiv:2502.04964, with
    equivalence as the similarity. lm-polygraph: CocoaMSP.
    """
    disagrees = 1 - answers["probability"].clip(upper=1)
    rated = np.exp(own_beams(answers, evidence)["logprob"] * disagrees)
    return pd.Series(rated).clip(upper=1)

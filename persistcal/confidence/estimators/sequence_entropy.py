"""Confidence in a question: the entropy of the answers as sequences of tokens."""

import numpy as np
import pandas as pd

from persistcal.confidence import uncertainty
from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import rate_candidates

NEEDS = ("logprob", "several_answers")


def sequence_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the Monte-Carlo entropy of the model's answers.

    Malinin and Gales, "Uncertainty Estimation in Autoregressive Structured
    Prediction", ICLR 2021. lm-polygraph: MonteCarloSequenceEntropy, of samples; beams
    are weighted by their probability.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: min(1.0, np.exp(-uncertainty.sequence_entropy(c.logprobs, c.weights))),
    )

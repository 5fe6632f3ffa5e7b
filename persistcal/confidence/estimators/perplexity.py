"""Confidence: geometric mean of the tokens' probabilities."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "n_tokens")


def perplexity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of the mean log-probability of the best beam's tokens: one over perplexity.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020. lm-polygraph: Perplexity.
    """
    best = own_beams(answers, evidence)
    # Summed log-probabilities can exceed 0 by a rounding error.
    return pd.Series(np.exp(best["logprob"] / best["n_tokens"])).clip(upper=1)

"""Confidence: mean entropy of the model over the answer's tokens."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import own_beams

NEEDS = ("logprob", "entropy")


def mean_token_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the mean entropy of the distributions of the best beam's tokens.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020. lm-polygraph: MeanTokenEntropy.
    """
    return pd.Series(np.exp(-own_beams(answers, evidence)["entropy"])).clip(upper=1)

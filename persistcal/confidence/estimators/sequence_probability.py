"""Confidence of an answer: the probability of its best beam as a sequence of tokens."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence

NEEDS = ("logprob",)


def sequence_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the best beam that says what the prediction says."""
    key = ["checkpoint", "question_id", "answer"]
    beams = evidence.beams.assign(answer=evidence.beams["text"].str.strip())
    best = beams.groupby(key, as_index=False)["logprob"].max()
    logprob = answers[key].merge(best, how="left", validate="one_to_one")["logprob"]
    # Summed log-probabilities may pass 0 by a rounding error.
    return np.exp(logprob).clip(upper=1)

"""Confidence of an answer: the probability with which the checkpoint calls it true."""

import pandas as pd

from persistcal.confidence.asking import ask_for_word
from persistcal.confidence.evidence import Evidence


def p_true(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the estimator's first word after its prompt.

    Notes
    -----
    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022,
    arXiv:2207.05221, zero-shot. lm-polygraph's PTrue has the same prompt, another default
    word, and leaves the end of the sequence out (docs/estimators.md).
    """
    return ask_for_word(answers, evidence)

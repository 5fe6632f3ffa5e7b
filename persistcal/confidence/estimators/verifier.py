"""Confidence: the verdict of an external verifier."""

import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence


def verifier(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the verifier's probability that each prediction is right.

    Paper, section "Comparison to Generalized Correctness Models".
    """
    assert evidence.verified is not None
    rated = answers[KEY].merge(evidence.verified, how="left", validate="one_to_one")
    return rated["confidence"].set_axis(answers.index)

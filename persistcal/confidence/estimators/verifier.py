"""Confidence of an external verifier, which knows nothing of the checkpoints."""

import pandas as pd

from persistcal.confidence.evidence import Evidence


def verifier(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the verifier's probability that each prediction is right.

    Notes
    -----
    Paper, section "Comparison to Generalized Correctness Models".
    """
    assert evidence.verified is not None
    key = ["checkpoint", "question_id"]
    rated = answers[key].merge(evidence.verified, how="left", validate="one_to_one")
    return rated["confidence"].set_axis(answers.index)

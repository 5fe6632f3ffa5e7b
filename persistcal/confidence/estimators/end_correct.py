"""Confidence: the position of the checkpoint, whatever the answer."""

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import Evidence


def end_correct(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return i / (m - 1) at the i-th of m evaluation checkpoints.

    Paper, section 3.1, "End-correct Baseline".
    """
    places = np.linspace(0, 1, len(evidence.evaluation))
    return answers["checkpoint"].map(dict(zip(evidence.evaluation, places, strict=True)))

"""Confidence in a checkpoint's answers that is taken from the last earlier checkpoint."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.surrogate import surrogate_confidences

NEEDS = ("several_answers",)


def self_consistency_surrogate(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the last earlier checkpoint gives to each prediction.

    Notes
    -----
    Paper, appendix "Self-Consistency Implementation".
    """
    assert evidence.equivalent is not None
    clusters = evidence.clusters
    candidates = clusters[clusters["checkpoint"] == evidence.earlier[-1]]
    return surrogate_confidences(
        answers[["question_id", "question", "answer"]],
        candidates.drop(columns="checkpoint"),
        evidence.equivalent,
    )

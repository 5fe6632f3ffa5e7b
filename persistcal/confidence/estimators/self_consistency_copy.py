"""Confidence: the last earlier checkpoint's confidence in its own answer."""

import pandas as pd

from persistcal.confidence.evidence import Evidence

NEEDS = ("several_answers",)


def self_consistency_copy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the last earlier checkpoint's self-consistency, 0 where it has no answer.

    Paper, section "Ablations": a copy cannot change with the checkpoint.
    """
    clusters = evidence.clusters
    first = clusters[
        (clusters["checkpoint"] == evidence.earlier[-1]) & (clusters["cluster"] == 0)
    ]
    copied = first.set_index("question_id")["probability"].clip(upper=1)
    return answers["question_id"].map(copied).fillna(0.0)

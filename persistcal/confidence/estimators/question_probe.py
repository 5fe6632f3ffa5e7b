"""A linear probe on the hidden state of the question, trained on the earlier checkpoints."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.probes import question_alone, rate_with_probe


def question_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the checkpoint answers the question correctly.

    The probe reads the hidden state at the end of the question, before any answer, so it can
    only predict how difficult the question is for the checkpoint.

    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022, arXiv:2207.05221:
    P(IK), with a linear classifier instead of a fine-tuned model.
    """
    return rate_with_probe(answers, evidence, evidence.labelled["correct"], question_alone)

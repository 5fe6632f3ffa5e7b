"""A linear probe on hidden states, trained on the earlier checkpoints."""

import pandas as pd

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.probes import rate_with_probe, with_answer


def linear_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the confidence of one probe, fitted on the train split of the earlier checkpoints.

    The probe reads the hidden state at the end of the question with its answer, at the
    estimator's layer or in the middle block.
    """
    return rate_with_probe(answers, evidence, evidence.labelled["correct"], with_answer)

"""Confidence in a question: how much of two answers is the same words in the same order."""

from functools import cache

import numpy as np
import pandas as pd
from rouge_score.rouge_scorer import RougeScorer

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import Candidates, mean_similarity, rate_candidates

NEEDS = ("several_answers",)


def lexical_similarity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean ROUGE-L of two different answers.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020, with the ROUGE-L of Kuhn, Gal and Farquhar, "Semantic
    Uncertainty", ICLR 2023. lm-polygraph: LexicalSimilarity_rougeL.
    """
    return rate_candidates(answers, evidence, _similarity).clip(0, 1)


def _similarity(candidates: Candidates) -> float:
    texts = candidates.texts
    similar = np.array(
        [[rouge_l(*sorted((first, second))) for second in texts] for first in texts]
    )
    return mean_similarity(similar, candidates.weights)


_SCORER = RougeScorer(["rougeL"], use_stemmer=True)


@cache
def rouge_l(first: str, second: str) -> float:
    """Return the F-measure of ROUGE-L, which is symmetric; 0 where a text has no word."""
    return _SCORER.score(first, second)["rougeL"].fmeasure

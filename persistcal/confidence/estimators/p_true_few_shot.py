"""Confidence of an answer: the probability that it is called true, after judged examples."""

import pandas as pd

from persistcal.confidence.asking import ask_for_word, judged_examples
from persistcal.confidence.evidence import Evidence

N_EXAMPLES = 6


def p_true_few_shot(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the estimator's first word after examples and its prompt.

    The examples are answers of the last earlier checkpoint to train questions: the first
    right and the first wrong ones in turn, each with the word that is so.

    Notes
    -----
    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022,
    arXiv:2207.05221, few-shot.
    """
    last = evidence.labelled["checkpoint"] == evidence.earlier[-1]
    examples = judged_examples(evidence.labelled[last], N_EXAMPLES)
    return ask_for_word(answers, evidence, examples)

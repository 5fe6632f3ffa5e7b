"""Confidence of an answer: the probability that it is called true, after judged examples."""

import numpy as np
import pandas as pd

from persistcal.confidence.estimators.p_true import p_true
from persistcal.confidence.evidence import Evidence
from persistcal.models.prompts import confidence_prompt

N_EXAMPLES = 6


def p_true_few_shot(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the estimator's first word after examples and its prompt.

    The examples are answers of the last earlier checkpoint to train questions: the first
    right and the first wrong ones in turn, each with its word.

    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022,
    arXiv:2207.05221, few-shot.
    """
    assert evidence.prompt and evidence.words
    right, wrong = evidence.words
    last = evidence.labelled["checkpoint"] == evidence.earlier[-1]
    shown = ""
    for row in judged_examples(evidence.labelled[last], N_EXAMPLES).itertuples():
        shown_answer = confidence_prompt(evidence.prompt, str(row.question), str(row.answer))
        shown += f"{shown_answer}{right if row.correct else wrong}\n\n"
    return p_true(answers, evidence, shown)


def judged_examples(labelled: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return `n` answers, right and wrong in turn; fewer where one kind runs out.

    >>> rows = pd.DataFrame({"answer": list("abcde"), "correct": [0, 0, 0, 1, 1]})
    >>> "".join(judged_examples(rows, 4)["answer"])
    'daeb'
    """
    right = labelled["correct"].astype(bool)
    first = pd.concat([labelled[right].head(n // 2), labelled[~right].head(n // 2)])
    turn = first.groupby(first["correct"].astype(bool)).cumcount()
    return first.iloc[np.argsort(turn.to_numpy(), kind="stable")]

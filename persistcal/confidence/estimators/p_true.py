"""Confidence: probability that the checkpoint calls the answer true."""

from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from persistcal.confidence.evidence import Evidence, rate_by_checkpoint
from persistcal.confidence.verifier import word_probability, word_token
from persistcal.models.prompts import confidence_prompt

BATCH = 64


def p_true(answers: pd.DataFrame, evidence: Evidence, shown: str = "") -> pd.Series:
    """Return the probability of the estimator's first word after `shown` and its prompt.

    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022,
    arXiv:2207.05221, zero-shot. lm-polygraph's PTrue has the same prompt, another default
    word, and no end of the sequence (docs/estimators.md).
    """
    assert evidence.prompt and evidence.words
    right, _ = evidence.words

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        token = word_token(tokenizer, right)
        pairs = zip(rows["question"], rows["answer"], strict=True)
        texts = [shown + confidence_prompt(evidence.prompt, *pair) for pair in pairs]
        return word_probability(model, tokenizer(texts)["input_ids"], token, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)

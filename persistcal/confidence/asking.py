"""Ask the checkpoints themselves about their answers, without adapters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.prompts import confidence_prompt
from persistcal.confidence.verifier import word_probability, word_token

BATCH = 64

Ask = Callable[[pd.DataFrame, Any, Any], ArrayLike]  # answers, model, tokenizer


def rate_by_checkpoint(answers: pd.DataFrame, evidence: Evidence, ask: Ask) -> pd.Series:
    """Return what `ask` says of the answers of each checkpoint, which is loaded for it."""
    assert evidence.load is not None
    rated = pd.Series(np.nan, answers.index)
    for checkpoint, rows in answers.groupby("checkpoint", sort=False):
        rated[rows.index] = np.asarray(ask(rows, *evidence.load(str(checkpoint))))
    return rated


def ask_for_word(answers: pd.DataFrame, evidence: Evidence, shown: str = "") -> pd.Series:
    """Return the probability that the prompt about each answer goes on with the right word.

    `shown` stands before each prompt.
    """
    assert evidence.prompt and evidence.words
    right, _ = evidence.words

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        token = word_token(tokenizer, right)
        pairs = zip(rows["question"], rows["answer"], strict=True)
        texts = [shown + confidence_prompt(evidence.prompt, *pair) for pair in pairs]
        return word_probability(model, tokenizer(texts)["input_ids"], token, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)

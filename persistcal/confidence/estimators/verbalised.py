"""Confidence: the checkpoint's verbalised digit, without an adapter."""

from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from persistcal.confidence.evidence import Evidence, rate_by_checkpoint
from persistcal.confidence.verbalised import check_digit_logits, digit_tokens, score_answers
from persistcal.models.prompts import confidence_prompt

BATCH = 64


def verbalised(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean digit that the model would give its answer, over nine.

    Tian et al., "Just Ask for Calibration", EMNLP 2023, read off the digits' logits as
    the adapters' confidence is. The prompt is the study's, or the estimator's own.
    """

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        digits = digit_tokens(tokenizer)
        pairs = zip(rows["question"], rows["answer"], strict=True)
        tokens = tokenizer([confidence_prompt(evidence.prompt, *p) for p in pairs])["input_ids"]
        check_digit_logits(model, tokens[:2], digits)
        return score_answers(model, tokens, digits, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)

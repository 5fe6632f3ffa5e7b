"""Confidence from the checkpoint's probabilities of words about its answer."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from persistcal.confidence.evidence import Evidence, rate_by_checkpoint
from persistcal.confidence.registry import estimator
from persistcal.confidence.verbalised import check_digit_logits, digit_tokens, score_answers
from persistcal.confidence.verifier import word_probability, word_token
from persistcal.models.prompts import confidence_prompt

BATCH = 64
N_EXAMPLES = 6


@estimator("Verbalised", optional=("prompt",), reads_weights=True, by_checkpoint=True)
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


@estimator(
    "P(True)",
    required=("words",),
    optional=("prompt",),
    reads_weights=True,
    by_checkpoint=True,
)
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


@estimator(
    "P(True), few-shot",
    required=("words",),
    optional=("prompt",),
    reads_weights=True,
    fitted=True,
    by_checkpoint=True,
)
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

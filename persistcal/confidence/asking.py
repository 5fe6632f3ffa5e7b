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


def judged_examples(labelled: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return `n` answers, right and wrong in turn; fewer where one kind runs out.

    Examples
    --------
    >>> rows = pd.DataFrame({"answer": list("abcde"), "correct": [0, 0, 0, 1, 1]})
    >>> "".join(judged_examples(rows, 4)["answer"])
    'daeb'
    """
    right = labelled["correct"].astype(bool)
    first = pd.concat([labelled[right].head(n // 2), labelled[~right].head(n // 2)])
    turn = first.groupby(first["correct"].astype(bool)).cumcount()
    return first.iloc[np.argsort(turn.to_numpy(), kind="stable")]


def ask_for_word(
    answers: pd.DataFrame, evidence: Evidence, examples: pd.DataFrame | None = None
) -> pd.Series:
    """Return the probability that the prompt about each answer goes on with the right word.

    `examples` are answers with a column correct, which stand before it, each followed by
    the right word or the wrong one.
    """
    assert evidence.prompt and evidence.words
    right, wrong = evidence.words
    shown = ""
    for row in () if examples is None else examples.itertuples():
        said = confidence_prompt(evidence.prompt, str(row.question), str(row.answer))
        shown += f"{said}{right if row.correct else wrong}\n\n"

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        token = word_token(tokenizer, right)
        pairs = zip(rows["question"], rows["answer"], strict=True)
        texts = [shown + confidence_prompt(evidence.prompt, *pair) for pair in pairs]
        return word_probability(model, tokenizer(texts)["input_ids"], token, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)

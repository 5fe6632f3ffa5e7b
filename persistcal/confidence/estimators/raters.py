"""Confidence from the probabilities that a model gives to words about an answer, or to it.

The model is the checkpoint itself, an earlier checkpoint or an external verifier.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.decode import ending_tokens, eos_tokens
from persistcal.confidence.evidence import KEY, Evidence, rate_by_checkpoint
from persistcal.confidence.uncertainty import own_beams
from persistcal.confidence.verbalised import (
    check_digit_logits,
    digit_tokens,
    next_logits,
    score_answers,
    word_probability,
    word_token,
)
from persistcal.models.packing import check_logits
from persistcal.models.prompts import confidence_prompts, few_shot_prompts
from persistcal.questions.question_list import asked_by
from persistcal.store.progress import Pace

BATCH = 64  # prompts
REREAD = 16  # answers in a batch when tokens are rated
N_EXAMPLES = 6


def verbalised(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean digit that the model would give its answer, over nine.

    Tian et al., "Just Ask for Calibration", EMNLP 2023. The weights of digits are
    the softmax of logits, as for adapters. By default the study's prompt.
    """

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        digits = digit_tokens(tokenizer)
        tokens = tokenizer(confidence_prompts(evidence.prompt, rows))["input_ids"]
        check_digit_logits(model, tokens[:2], digits)
        return score_answers(model, tokens, digits, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)


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
        texts = [shown + prompt for prompt in confidence_prompts(evidence.prompt, rows)]
        return word_probability(model, tokenizer(texts)["input_ids"], token, batch_size=BATCH)

    return rate_by_checkpoint(answers, evidence, ask)


def p_true_few_shot(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the estimator's first word after examples and its prompt.

    The examples are answers of the last earlier checkpoint to questions of the train split.
    Right and wrong answers alternate, and each is followed by its word.

    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022,
    arXiv:2207.05221, few-shot.
    """
    assert evidence.prompt and evidence.words
    right, wrong = evidence.words
    last = evidence.labelled["checkpoint"] == evidence.earlier[-1]
    examples = judged_examples(evidence.labelled[last], N_EXAMPLES)
    words = examples["correct"].map({True: right, False: wrong})
    pairs = zip(confidence_prompts(evidence.prompt, examples), words, strict=True)
    return p_true(answers, evidence, "".join(f"{text}{word}\n\n" for text, word in pairs))


def judged_examples(labelled: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return `n` answers, right and wrong in turn, or fewer if there are too few of a kind.

    >>> rows = pd.DataFrame({"answer": list("abcde"), "correct": [0, 0, 0, 1, 1]})
    >>> "".join(judged_examples(rows, 4)["answer"])
    'daeb'
    """
    right = labelled["correct"].astype(bool)
    first = pd.concat([labelled[right].head(n // 2), labelled[~right].head(n // 2)])
    turn = first.groupby(first["correct"].astype(bool)).cumcount()
    return first.iloc[np.argsort(turn.to_numpy(), kind="stable")]


def base_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the geometric mean of the probabilities that the rater gives the answer's tokens.

    The rater receives the question as in the study. The mean includes the most probable token
    that can end the answer, so the values equal `perplexity` if a checkpoint rates its own
    answers.

    Tan et al., "BaseCal: Unsupervised Confidence Calibration via Base Model Signals", 2026,
    arXiv:2601.03042: BaseCal-ReEval.
    """
    assert evidence.load is not None and evidence.questions is not None
    assert evidence.few_shot is not None
    model, tokenizer = evidence.load(evidence.rater)
    chat = bool(evidence.few_shot.chat)
    questions = asked_by(evidence.questions, evidence.rater)
    rows = questions[questions["question_id"].isin(answers["question_id"])]
    prompts = {
        question_id: prefix + suffix
        for prefix, *rest in few_shot_prompts(tokenizer, questions, rows, evidence.few_shot)
        for suffix, question_id in zip(*rest, strict=True)
    }
    beams = own_beams(answers, evidence)
    space = " " if evidence.options and not chat else ""
    logprobs = continuation_logprobs(
        model,
        tokenizer,
        [prompts[question_id] for question_id in answers["question_id"]],
        [space + text for text in beams["text"]],
        beams["n_tokens"].tolist(),
        chat=chat,
    )
    mean = [np.mean(values) for values in logprobs]
    return pd.Series(np.exp(mean), answers.index).clip(upper=1)


@torch.inference_mode()
def continuation_logprobs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    texts: Sequence[str],
    n_tokens: Sequence[int],
    *,
    chat: bool = False,
) -> list[list[float]]:
    """Return the log-probability of each token of each text, and of the token that ends it.

    Prompt and text are encoded together, and the text begins after the number of tokens in the
    encoded prompt. A text ends with the most probable end token. A text with `n_tokens` tokens
    was cut off and gets no end token. With `chat` the prompts already contain the special
    tokens.
    """
    special = {"add_special_tokens": not chat}
    prompt_tokens = tokenizer(list(prompts), **special)["input_ids"]
    together = [prompt + text for prompt, text in zip(prompts, texts, strict=True)]
    wholes = tokenizer(together, **special)["input_ids"]
    ends = ending_tokens(model, tokenizer, eos_tokens(model))
    order = sorted(range(len(prompt_tokens)), key=lambda i: wholes[i])
    rated: list[list[float]] = [[] for _ in order]
    with Pace(total=len(order), desc="rating", unit=" answers") as bar:
        for start in range(0, len(order), REREAD):
            batch = order[start : start + REREAD]
            # Each token follows a separate prompt; trees encode shared parts once.
            steps = [
                (i, context, token)
                for i in batch
                for context, token in _steps(prompt_tokens[i], wholes[i], n_tokens[i])
            ]
            contexts = [context for _, context, _ in steps]
            logits = next_logits(model, contexts)
            if not start:
                check_logits(model, contexts[:2], logits[:2])
            for (i, _, token), logprob in zip(
                steps, logits.double().log_softmax(-1), strict=True
            ):
                rated[i].append(float(logprob[ends].max() if token is None else logprob[token]))
            bar.update(len(batch))
    return rated


def _steps(prompt: list[int], whole: list[int], n: int) -> list[tuple[list[int], int | None]]:
    """Return each context with its next token, which is None at the end of the text."""
    text = whole[len(prompt) :]
    tokens = text if len(text) >= n else [*text, None]
    return [(prompt + text[:place], token) for place, token in enumerate(tokens)]


def verifier(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the verifier's probability that each prediction is right.

    Paper, section "Comparison to Generalized Correctness Models".
    """
    assert evidence.verified is not None
    rated = answers[KEY].merge(evidence.verified, how="left", validate="one_to_one")
    return rated["confidence"].set_axis(answers.index)

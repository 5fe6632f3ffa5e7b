"""Confidence by another model: an earlier checkpoint or an external verifier."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.decode import ending_tokens, eos_tokens
from persistcal.confidence.evidence import KEY, Evidence
from persistcal.confidence.registry import estimator
from persistcal.confidence.uncertainty import own_beams
from persistcal.confidence.verifier import next_logits
from persistcal.models.packing import check_logits
from persistcal.models.prompts import few_shot_prompts
from persistcal.questions.question_list import asked_by
from persistcal.store.progress import Pace

BATCH = 16  # answers


@estimator(
    "Earlier checkpoint as the rater",
    needs=("logprob", "n_tokens"),
    required=("rater",),
    reads_weights=True,
    by_checkpoint=True,
)
def base_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the geometric mean of the probabilities that the rater gives the answer's tokens.

    The rater receives the question as in the study. The token that ends the answer counts: the
    most probable one of the possible end tokens. So a checkpoint that rates its own answers
    gives `perplexity`.

    Tan et al., "BaseCal: Unsupervised Confidence Calibration via Base Model Signals", 2026,
    arXiv:2601.03042: BaseCal-ReEval.
    """
    assert evidence.load is not None and evidence.questions is not None
    assert evidence.few_shot is not None
    model, tokenizer = evidence.load(evidence.rater)
    chat = bool(evidence.few_shot.chat)
    questions = asked_by(evidence.questions, evidence.rater)
    asked = questions[questions["question_id"].isin(answers["question_id"])]
    prompts = {
        question_id: prefix + suffix
        for prefix, *rest in few_shot_prompts(tokenizer, questions, asked, evidence.few_shot)
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

    Prompt and text are encoded together, and the first tokens, as many as the prompt has, are
    the prompt's. A text ends with the most probable end token. A text with `n_tokens` tokens
    was cut off and gets no end token.

    Parameters
    ----------
    chat : bool, default=False
        Whether the prompts contain the special tokens, so that none are added.
    """
    special = {"add_special_tokens": not chat}
    prompt_tokens = tokenizer(list(prompts), **special)["input_ids"]
    together = [prompt + text for prompt, text in zip(prompts, texts, strict=True)]
    wholes = tokenizer(together, **special)["input_ids"]
    ends = ending_tokens(model, tokenizer, eos_tokens(model))
    order = sorted(range(len(prompt_tokens)), key=lambda i: wholes[i])
    by_row: dict[int, list[float]] = {}
    with Pace(total=len(order), desc="rating", unit=" answers") as bar:
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            for i in batch:
                by_row[i] = []
            # Each token follows a separate prompt; trees encode shared parts once.
            steps = [
                (i, prompt_tokens[i] + wholes[i][len(prompt_tokens[i]) : place], token)
                for i in batch
                for place, token in _steps(prompt_tokens[i], wholes[i], n_tokens[i])
            ]
            contexts = [context for _, context, _ in steps]
            logits = next_logits(model, contexts)
            if not start:
                check_logits(model, contexts[:2], logits[:2])
            logprobs = logits.double().log_softmax(-1)
            for row, (i, _, token) in enumerate(steps):
                by_row[i].append(_at(logprobs[row], token, ends))
            bar.update(len(batch))
    return [by_row[i] for i in range(len(prompt_tokens))]


def _steps(context: list[int], whole: list[int], n: int) -> list[tuple[int, int | None]]:
    """Return the position of each token of a text with the token; None ends the text."""
    steps: list[tuple[int, int | None]] = list(enumerate(whole))
    steps = steps[len(context) :]
    return steps if len(steps) >= n else [*steps, (len(whole), None)]


def _at(logprobs: Tensor, token: int | None, ends: Tensor) -> float:
    return float(logprobs[ends].max() if token is None else logprobs[token])


@estimator("Verifier", required=("verifier",))
def verifier(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the verifier's probability that each prediction is right.

    Paper, section "Comparison to Generalized Correctness Models".
    """
    assert evidence.verified is not None
    rated = answers[KEY].merge(evidence.verified, how="left", validate="one_to_one")
    return rated["confidence"].set_axis(answers.index)

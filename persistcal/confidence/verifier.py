"""Ask a verifier, a separate model, whether answers are right.

The confidence is the probability of one word, such as "yes", among the whole
vocabulary. The probabilities of other words, "no" and "Yes" included, do not
count. This follows the authors of generalized correctness models (Xiao et al.,
"Generalized Correctness Models: Learning Calibrated and Model-Agnostic
Correctness Predictors from Historical Patterns", 2025, arXiv:2509.24988).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.packing import check_logits, over_prompts, pack
from persistcal.models.prompts import chat_prompt, confidence_prompt


@dataclass(frozen=True)
class VerifierPrompt:
    """The config's request for a verdict."""

    template: str  # with ``{question}`` and ``{answer}``
    chat_template: bool  # `chat` of `verifier_prompt`
    word: str  # the verifier's word for right answers


def word_token(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Return the token of `word`, leading space included; several are refused."""
    ids = tokenizer.encode(word, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise ValueError(
            f"Tokenizer {tokenizer.name_or_path!r} splits the word {word!r} into "
            f"{tokenizer.convert_ids_to_tokens(ids)}; give a word that is one token, with the "
            "space before it if the prompt ends without one."
        )
    return ids[0]


def verifier_prompt(
    tokenizer: PreTrainedTokenizerBase, template: str, question: str, answer: str, *, chat: bool
) -> list[int]:
    """Return the token ids of the request for a verdict.

    With `chat` it is a user's message in the tokenizer's chat template, without thinking;
    otherwise it is plain text that the verifier continues.
    """
    text = confidence_prompt(template, question, answer)
    if not chat:
        return tokenizer(text)["input_ids"]
    filled = chat_prompt(tokenizer, text, key="the verifier's chat_template")
    return tokenizer(filled, add_special_tokens=False)["input_ids"]


def next_logits(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Tensor:
    """Return the model's own logits after each prompt: shape (n_prompts, vocab_size).

    A common start of prompts is encoded once.
    """
    packed = pack(model, prompts)

    def last_tokens(_head: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        [hidden] = inputs
        return (packed.last_tokens(hidden)[None],)

    # Select positions before the head: logits at all positions would need the most memory.
    hook = model.get_output_embeddings().register_forward_pre_hook(last_tokens)
    try:
        return model(**packed.inputs).logits[0]
    finally:
        hook.remove()


@torch.inference_mode()
def word_probability(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    token: int,
    *,
    batch_size: int,
) -> np.ndarray:
    """Return the probability that `token` follows each prompt.

    Parameters
    ----------
    prompts : sequence of sequence of int
        Token ids.
    batch_size : int
        Prompts in a forward pass; results do not depend on it beyond rounding.

    Returns
    -------
    ndarray of float64, shape (n_prompts,)
        Softmax over the whole vocabulary, in [0, 1].

    Raises
    ------
    ValueError
        If the model's results for packed prompts and for single prompts differ.
    """

    def probabilities(batch: list[Sequence[int]]) -> Tensor:
        return next_logits(model, batch).double().softmax(-1)[:, token]

    check_logits(model, prompts[:2], next_logits(model, prompts[:2]))
    return over_prompts(probabilities, prompts, batch_size=batch_size, desc="rating")

"""Ask a verifier, a model of its own, whether answers are right.

The confidence is the probability of one word, such as "yes", among the whole
vocabulary: what the verifier gives to other words, "no" and "Yes" included, is
lost to it. So do the authors of generalized correctness models (Xiao et al.,
"Generalized Correctness Models: Learning Calibrated and Model-Agnostic
Correctness Predictors from Historical Patterns", 2025, arXiv:2509.24988).
"""

from collections.abc import Sequence

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.packed_forward import check_close, pack
from persistcal.confidence.prompts import confidence_prompt
from persistcal.models.batches import Work, in_batches
from persistcal.models.chat import chat_prompt
from persistcal.store.pace import Pace


def word_token(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Return the token of `word`, leading space included.

    Raises
    ------
    ValueError
        When it is not one token.
    """
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

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    template : str
        With ``{question}`` and ``{answer}``.
    question, answer : str
    chat : bool
        Whether the filled template is a user's message, to be put into the
        tokenizer's chat template (without thinking, where it knows of that), or
        plain text that the verifier goes on with.

    Raises
    ------
    ValueError
        When `chat` is set and the tokenizer has no chat template.
    """
    text = confidence_prompt(template, question, answer)
    if not chat:
        return tokenizer(text)["input_ids"]
    filled = chat_prompt(tokenizer, text, key="the verifier's chat_template")
    return tokenizer(filled, add_special_tokens=False)["input_ids"]


def next_logits(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Tensor:
    """Return the model's own logits after each prompt: shape (n_prompts, vocab_size).

    What prompts have in common at their start is encoded once.
    """
    packed = pack(model, prompts)

    def last_tokens(_head: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        [hidden] = inputs
        return (packed.last_tokens(hidden)[None],)

    # Before the head, whose logits at all places would take more memory than all else.
    hook = model.get_output_embeddings().register_forward_pre_hook(last_tokens)
    try:
        return model(**packed.inputs).logits[0]
    finally:
        hook.remove()


@torch.inference_mode()
def check_packing(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> None:
    """Compare `next_logits` with a forward pass of each prompt alone.

    Raises
    ------
    ValueError
        When the two differ by more than rounding, as for an architecture that treats
        attention masks in its own way.
    """
    ours = next_logits(model, prompts).float()
    alone = [
        model(torch.tensor([prompt], device=model.device), use_cache=False).logits[0, -1]
        for prompt in prompts
    ]
    check_close(model, ours, torch.stack(alone).float())


@torch.inference_mode()
def word_probability(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    token: int,
    *,
    batch_size: int,
) -> np.ndarray:
    """Return the probability that each prompt goes on with `token`.

    Parameters
    ----------
    model : PreTrainedModel
        Causal language model, with or without an adapter.
    prompts : sequence of sequence of int
        Token ids.
    token : int
    batch_size : int
        Prompts in a forward pass; results do not depend on it beyond rounding.

    Returns
    -------
    ndarray of float64, shape (n_prompts,)
        Softmax over the whole vocabulary, in [0, 1].

    Raises
    ------
    ValueError
        When the model does not compute packed prompts as it does each alone.
    MemoryError
        When a single prompt does not fit into the GPU's memory; of a batch that does
        not, the halves are run one after the other.
    """

    def probabilities(chosen: list[int]) -> list[float]:
        logits = next_logits(model, [prompts[i] for i in chosen])
        return logits.double().softmax(-1)[:, token].tolist()

    check_packing(model, prompts[:2])
    # Those that begin alike go into one batch.
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    with Pace(total=len(order), desc="rating", unit=" answers") as bar:
        by_prompt = in_batches(
            probabilities, order, batch_size=batch_size, work=Work(), progress=bar.update
        )
    return np.array([by_prompt[i] for i in range(len(prompts))])

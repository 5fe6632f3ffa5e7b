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
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.prompts import confidence_prompt
from persistcal.models.batches import Work, in_batches
from persistcal.models.chat import chat_prompt


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
            f"Tokenizer {tokenizer.name_or_path!r} splits the verifier's word {word!r} into "
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


@torch.inference_mode()
def word_probability(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    token: int,
    *,
    batch_size: int,
    progress: str = "",
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
    progress : str
        Label of a progress bar; none when empty.

    Returns
    -------
    ndarray of float64, shape (n_prompts,)
        Softmax over the whole vocabulary, in [0, 1].

    Raises
    ------
    MemoryError
        When a single prompt does not fit into the GPU's memory; of a batch that does
        not, the halves are run one after the other.
    """

    def probabilities(chosen: list[int]) -> list[float]:
        length = len(prompts[chosen[0]])
        # Padded on the left, so that every prompt ends where the logits are kept.
        padding = torch.tensor([[length - len(prompts[i])] for i in chosen])
        token_ids = torch.tensor(
            [[0] * (length - len(prompts[i])) + [*prompts[i]] for i in chosen]
        )
        place = torch.arange(length) - padding
        logits = model(
            input_ids=token_ids.to(model.device),
            attention_mask=(place >= 0).long().to(model.device),
            position_ids=place.clamp(min=0).to(model.device),
            logits_to_keep=1,
            use_cache=False,
        ).logits[:, -1]
        return logits.double().softmax(-1)[:, token].tolist()

    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    with tqdm(total=len(order), desc=progress, disable=not progress, leave=False) as bar:
        found = in_batches(
            probabilities, order, batch_size=batch_size, work=Work(), progress=bar.update
        )
    return np.array([found[i] for i in range(len(prompts))])

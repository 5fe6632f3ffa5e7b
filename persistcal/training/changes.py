"""Train a checkpoint further on documents, by one of the methods of the laboratory."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.questions.question_list import true_at
from persistcal.store.progress import Pace
from persistcal.training.data import learning_rate
from persistcal.training.methods import SETS, Tuning

log = logging.getLogger(__name__)


class Document(NamedTuple):
    """Tokens of a question with its answer; the first `n_prompt` tokens are not learnt."""

    tokens: list[int]
    n_prompt: int


def questions_at(questions: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    """Return questions of several datasets with the references of a checkpoint."""
    return pd.concat([true_at(rows, checkpoint) for _, rows in questions.groupby("dataset")])


def of_categories(questions: pd.DataFrame, categories: Sequence[str], key: str) -> pd.DataFrame:
    """Return the questions of `categories`; refuse a category without questions."""
    present = questions["category"].unique()
    if unknown := [name for name in categories if name not in present]:
        datasets = ", ".join(questions["dataset"].unique())
        raise ValueError(
            f"config: {key} names {unknown[0]!r}, but no question of {datasets} is of that "
            f"category; there are {', '.join(sorted(map(repr, present)))}."
        )
    return questions[questions["category"].isin(categories)]


def write_documents(
    tokenizer: PreTrainedTokenizerBase, questions: pd.DataFrame
) -> list[Document]:
    """Return each question with its first reference, in the form of few-shot examples.

    Training learns the tokens of the answer and of the blank line that ends it.
    """
    documents = []
    for question, references in zip(
        questions["question"], questions["references"], strict=True
    ):
        text = few_shot_prefix([(question, references[0])])
        encoded = tokenizer(text, return_offsets_mapping=True)
        n_shown = len(question_suffix(question))
        # A token that ends within the answer is the answer's, wherever it begins.
        learnt = [end > n_shown for _, end in encoded["offset_mapping"]]
        documents.append(Document(encoded["input_ids"], learnt.index(True)))
    return documents


def answer_logprobs(model: PreTrainedModel, documents: Sequence[Document]) -> Tensor:
    """Return the log-probability of each document's answer after its question, in nats."""
    device = next(model.parameters()).device
    rows = [torch.tensor(document.tokens, device=device) for document in documents]
    tokens = pad_sequence(rows, batch_first=True)
    is_token = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    n_prompt = torch.tensor([[document.n_prompt] for document in documents], device=device)
    learnt = is_token * (torch.arange(tokens.shape[1], device=device) >= n_prompt)
    logits = model(input_ids=tokens, attention_mask=is_token, use_cache=False).logits
    losses = cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return -(losses * learnt[:, 1:]).sum(dim=1)


MAX_GRADIENT_NORM = 1.0


def change_weights(
    model: PreTrainedModel, documents: Mapping[str, Sequence[Document]], tuning: Tuning
) -> PreTrainedModel:
    """Return `model`, trained further in place.

    Each step is a step of AdamW without weight decay and without dropout, with the gradient
    norm clipped to 1 and the rates of `persistcal.training.data.learning_rate`. The same seed
    gives the same weights. With `rank`, an adapter of this rank on all linear layers, scaled by
    two, is trained and then added to the weights. With `max_change` each weight is clipped to
    this distance from its start after each step.
    """
    rank = getattr(tuning, "rank", None)  # only some methods have this key
    if not rank:
        _train(model.requires_grad_(True), documents, tuning)
        return model.requires_grad_(False)
    with torch.random.fork_rng():
        torch.manual_seed(tuning.seed)
        lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
        adapted = get_peft_model(model, lora)
    _train(cast(PreTrainedModel, adapted), documents, tuning)
    return cast(PreTrainedModel, adapted.merge_and_unload(safe_merge=True))


def batches(n: int, size: int, *, seed: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield batches of numbers below `n` without end, in a new order in each pass.

    The last batch of a pass can be smaller.
    """
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(n)
        yield from np.split(order, range(size, n, size))


def _train(
    model: PreTrainedModel, documents: Mapping[str, Sequence[Document]], tuning: Tuning
) -> None:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    max_change = getattr(tuning, "max_change", None) or 0.0
    start = [parameter.detach().clone() for parameter in parameters] if max_change else []
    optimizer = torch.optim.AdamW(parameters, weight_decay=0.0)
    drawn = {
        name: batches(len(documents[name]), tuning.batch_size, seed=[tuning.seed, place])
        for place, name in enumerate(SETS)
        if documents[name]
    }
    main = documents["learn"] or documents["forget"]
    compared = documents["forget"] if tuning.compares_start else []
    start_logprobs = _logprobs(model, compared, tuning.batch_size)
    n_steps = tuning.epochs * ceil(len(main) / tuning.batch_size)
    losses = []
    for step in Pace(range(n_steps), type(tuning).__name__, unit=" steps"):
        rows = {name: next(draws) for name, draws in drawn.items()}
        current = {n: answer_logprobs(model, [documents[n][i] for i in rows[n]]) for n in rows}
        reference = start_logprobs[rows["forget"]] if len(start_logprobs) else start_logprobs
        loss = tuning.loss(current, reference)
        loss.backward()
        clip_grad_norm_(parameters, MAX_GRADIENT_NORM)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, n_steps, tuning.learning_rate)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for parameter, first in zip(parameters, start, strict=False):
                parameter.clamp_(first - max_change, first + max_change)
        losses.append(loss.item())
        if not np.isfinite(losses[-1]):
            raise FloatingPointError(
                f"Step {step}: the loss is not finite; lower change.learning_rate."
            )
    log.info("%d steps: loss %.3f, at the end %.3f", n_steps, losses[0], losses[-1])


@torch.no_grad()
def _logprobs(model: PreTrainedModel, documents: Sequence[Document], size: int) -> Tensor:
    parts = [documents[start : start + size] for start in range(0, len(documents), size)]
    parts_logprobs = [answer_logprobs(model, part) for part in parts]
    return torch.cat(parts_logprobs) if parts_logprobs else torch.empty(0)

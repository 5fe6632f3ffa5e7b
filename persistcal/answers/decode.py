"""Short answers by beam search or sampling, with the few-shot prefix encoded once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import isnan
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.beam_search import BeamSearch
from persistcal.answers.sampling import Sampling
from persistcal.answers.token_trees import (
    Layer,
    PrefixCache,
    Trees,
    shared_prefix_attention,
)
from persistcal.models.batches import Work, in_batches, warn_of_little_memory
from persistcal.models.vllm import VllmModel

BATCH = 128  # questions that are given to a shard, decoded and remembered together
TYPICAL = 30  # tokens of an answer for which there is room; longer ones may need halving


class Beam(NamedTuple):
    """One answer.

    Attributes
    ----------
    text : str
        What was generated before the first newline or end-of-sequence token, as it is:
        often with a space in front, and possibly empty.
    logprob : float
        Summed log-probability of its tokens, the one that ended it included.
    n_tokens : int
        Their number.
    entropy : float or None
        Mean entropy, in nats, of the distributions that they come from; None of vLLM,
        which gives the likeliest tokens only.
    """

    text: str
    logprob: float
    n_tokens: int
    entropy: float | None


class Draw(NamedTuple):
    """How samples are drawn, see `Sampling`.

    Attributes
    ----------
    temperature, top_p : float
    seed : int
    """

    temperature: float
    top_p: float
    seed: int


Search = BeamSearch | Sampling


@torch.inference_mode()
def generate_beams(
    model: PreTrainedModel | VllmModel,
    tokenizer: PreTrainedTokenizerBase,
    prefix: str,
    suffixes: Sequence[str],
    *,
    n_beams: int = 10,
    max_new_tokens: int = 100,
    batch_size: int | Literal["auto"] = "auto",
    memory_gb: float = 16.0,
    add_special_tokens: bool = True,
    draw: Draw | None = None,
    progress: Callable[[int], object] | None = None,
    work: Work = Work(),  # noqa: B008 - immutable
) -> list[list[Beam]]:
    r"""Answer each prompt ``prefix + suffix`` with beams that end at their first newline.

    Or with samples, if it is told how to `draw` them: then what follows about beams holds
    of them, but for their order. Texts and scores are those of transformers'
    ``generate(num_beams=n_beams, num_return_sequences=n_beams, length_penalty=0.0,
    early_stopping=False, do_sample=False, stop_strings=["\n"])`` on one prompt at a
    time [1]_, whatever the batch size; see `BeamSearch` for what that means. The tokens
    that all prompts have in common at their start are encoded once.

    Parameters
    ----------
    model : transformers.PreTrainedModel or VllmModel
        A causal language model: of transformers, one that takes attention functions of
        others, such as Olmo-3, Llama and Qwen3; or any that vLLM runs.
    tokenizer : transformers.PreTrainedTokenizerBase
        Each whole prompt is tokenized by it at once.
    prefix : str
        Text in front of every suffix; may be empty.
    suffixes : sequence of str
        The questions.
    n_beams : int, default=10
        Beams per question; fewer are returned only if the vocabulary is smaller than
        twice as many.
    max_new_tokens : int, default=100
        Beams end there at the latest.
    batch_size : int or "auto"
        Questions decoded together; "auto" takes as many as should fit into `memory_gb`,
        `BATCH` at most.
    memory_gb : float, default=16.0
        Memory in GB for keys, values and logits. It is a setting, not what happens to be
        free, because in bfloat16 what is decoded together shows in the last bits.
    add_special_tokens : bool, default=True
        Whether the tokenizer adds its first token, if it has one; false for prompts of a
        chat template, which hold it.
    draw : Draw, optional
        Draws `n_beams` samples of each answer instead of searching for beams; what a
        sample is depends on the suffix, not on the batch.
    progress : callable, optional
        Called with the number of questions of each batch that is done.
    work : Work, optional
        Which batches are decoded, all by default, and what keeps their beams.

    Returns
    -------
    list of list of Beam
        For each suffix its beams, best first, or its samples as they were drawn.
        Different tokens may spell the same text: these stay separate beams. None for a
        suffix whose batch is not part of `work`.

    Raises
    ------
    ValueError
        When a prompt has no tokens, the model does not support the shared prefix, or
        samples are asked of vLLM.
    MemoryError
        When a single question does not fit into the GPU's memory; of a batch that does
        not, the halves are decoded one after the other.

    References
    ----------
    .. [1] Beam search of transformers' `generate`:
       https://huggingface.co/docs/transformers/main_classes/text_generation
    """
    if not suffixes:
        return []
    if draw and isinstance(model, VllmModel):
        raise ValueError("Samples are drawn with decoding.backend transformers, not vllm.")
    texts = [prefix + suffix for suffix in suffixes]
    prompts = tokenizer(texts, add_special_tokens=add_special_tokens)["input_ids"]
    if not all(prompts):
        raise ValueError(f"prompt {prompts.index([])} has no tokens; give it some text.")
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    eos = _eos_tokens(model)
    ends = _ending_tokens(model, tokenizer, eos)

    def decode(batch: list[int]) -> list[list[list]]:
        search: Search
        if draw:
            search = Sampling(
                [suffixes[i] for i in batch],
                n_samples=n_beams,
                max_new_tokens=max_new_tokens,
                ends=ends,
                **draw._asdict(),
            )
        else:
            search = BeamSearch(
                len(batch),
                n_beams=n_beams,
                n_candidates=max(2, 1 + len(eos)) * n_beams,
                max_new_tokens=max_new_tokens,
                ends=ends,
            )
        run(batch, search)
        return [[list(beam) for beam in beams] for beams in _beams(search, tokenizer, eos)]

    n_shared = _n_common([prompt[:-1] for prompt in prompts])
    at_once = None
    with _searching(model, prompts, n_shared) as run:
        if batch_size == "auto" and not isinstance(model, VllmModel):
            own = len(prompts[by_length[-1]]) - n_shared
            n_tokens = own + n_beams * min(max_new_tokens, TYPICAL)
            per_question = bytes_of_a_question(model, n_tokens, n_beams)
            at_once = max(1, min(BATCH, len(prompts), int(memory_gb * 1e9 / per_question)))
            warn_of_little_memory(model.device, at_once * per_question)
        answers = in_batches(
            decode,
            by_length,
            batch_size=BATCH if batch_size == "auto" else batch_size,
            at_once=at_once,
            work=work,
            progress=progress,
        )
    return [[Beam(*beam) for beam in answers.get(i, [])] for i in range(len(prompts))]


def bytes_of_a_question(model: PreTrainedModel, n_tokens: int, n_beams: int) -> int:
    """Return the memory that a question takes.

    Its tree has the keys and values of `n_tokens` tokens, and each beam the logits of its
    next token: as the model gives them, and in float32 before and after their sum, and
    for their entropy.
    """
    config = model.config
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    n_kv = getattr(config, "num_key_value_heads", None) or heads
    per_token = 2 * config.num_hidden_layers * n_kv * head_dim * model.dtype.itemsize
    return n_tokens * per_token + n_beams * 5 * 4 * config.vocab_size


@contextmanager
def _searching(
    model: PreTrainedModel | VllmModel, prompts: list[list[int]], n_shared: int
) -> Iterator[Callable[[list[int], Search], None]]:
    """Yield what runs a search on the prompts of the given numbers."""
    if isinstance(model, VllmModel):
        yield partial(_search_with_vllm, model, prompts)
        return

    def run(batch: list[int], search: Search) -> None:
        _search(model, shared, [prompts[i][n_shared:] for i in batch], search)

    with shared_prefix_attention(model):
        shared = _encode(model, prompts[0][:n_shared])
        yield run


def _search_with_vllm(
    model: VllmModel, prompts: list[list[int]], batch: list[int], search: Search
) -> None:
    """Run `search`; vLLM's own cache of prefixes finds what was encoded at former steps."""
    assert isinstance(search, BeamSearch)
    while len(search.question):
        beams = zip(search.question.tolist(), search.tokens.tolist(), strict=True)
        texts = [prompts[batch[question]] + tokens for question, tokens in beams]
        search.extend(*model.next_tokens(texts, search.n_candidates))


def _n_common(sequences: list[list[int]]) -> int:
    """Return the length of the longest start that all sequences have in common.

    >>> _n_common([[5, 6, 7], [5, 6], [5, 6, 8, 9]])
    2
    """
    first, last = min(sequences), max(sequences)
    pairs = enumerate(zip(first, last, strict=False))
    return next((i for i, (a, b) in pairs if a != b), len(first))


def _eos_tokens(model: PreTrainedModel | VllmModel) -> list[int]:
    """Return the end-of-sequence tokens that `generate` would stop at."""
    eos = model.generation_config.eos_token_id if model.generation_config else None
    return [] if eos is None else [eos] if isinstance(eos, int) else list(eos)


def _ending_tokens(
    model: PreTrainedModel | VllmModel, tokenizer: PreTrainedTokenizerBase, eos: list[int]
) -> Tensor:
    """Return whether each token ends a beam: it holds a newline or is in `eos`."""
    if isinstance(model, VllmModel):
        vocab_size = model.vocab_size
    else:
        vocab_size = model.get_output_embeddings().weight.shape[0]
    ids = range(min(len(tokenizer), vocab_size))
    texts = tokenizer.batch_decode([[i] for i in ids], clean_up_tokenization_spaces=False)
    ends = torch.zeros(vocab_size, dtype=torch.bool)
    ends[[i for i in ids if "\n" in texts[i]] + eos] = True
    return ends.to(model.device)


def _encode(model: PreTrainedModel, tokens: list[int]) -> list[Layer]:
    """Return each layer's keys and values of `tokens`, for `PrefixCache`."""
    if not tokens:
        return []
    ids = torch.tensor(tokens, device=model.device)
    trees = Trees(1, model.device)
    trees.plant(torch.zeros_like(ids), torch.arange(len(ids), device=ids.device), [len(ids)])
    PrefixCache([], trees).forward(model, ids, rows=[0])
    return [(keys[:, 0], values[:, 0]) for keys, values in trees.layers]


def _search(
    model: PreTrainedModel, shared: list[Layer], suffixes: list[list[int]], search: Search
) -> None:
    """Run `search` on the questions whose tokens after the shared ones are `suffixes`."""
    trees = Trees(len(suffixes), model.device)
    cache = PrefixCache(shared, trees)
    lengths = [len(tokens) for tokens in suffixes]
    places = [
        (question, place, token)
        for question, tokens in enumerate(suffixes)
        for place, token in enumerate(tokens)
    ]
    question, place, token = torch.tensor(list(zip(*places, strict=True)), device=model.device)
    trees.plant(question, cache.n_prefix + place, lengths)
    last = [sum(lengths[: question + 1]) - 1 for question in range(len(lengths))]
    parent = search.advance(cache.forward(model, token, rows=last))
    rows = torch.tensor(last, device=model.device)[parent]
    cache.first_query += min(lengths) - 1
    while len(search.question):
        cache.first_query += 1
        trees.grow(search.question, rows, search.left)
        rows = search.advance(cache.forward(model, search.tokens[:, -1]))


def _beams(
    search: Search, tokenizer: PreTrainedTokenizerBase, eos: list[int]
) -> list[list[Beam]]:
    """Decode the finished beams of each question."""
    beams: list[list[Beam]] = []
    skipped = {-1, *eos}
    lengths = (search.finished_tokens >= 0).sum(dim=2)
    mean_entropy = search.finished_entropy / lengths
    for tokens, *about in zip(
        search.finished_tokens.tolist(),
        search.finished_score.tolist(),
        lengths.tolist(),
        mean_entropy.tolist(),
        strict=True,
    ):
        texts = tokenizer.batch_decode(
            [[token for token in beam if token not in skipped] for beam in tokens],
            skip_special_tokens=True,
        )
        beams.append(
            [
                Beam(text.split("\n", 1)[0], score, length, None if isnan(entropy) else entropy)
                for text, score, length, entropy in zip(texts, *about, strict=True)
                if score > -torch.inf
            ]
        )
    return beams

"""Short answers by beam search or sampling, with the few-shot prefix encoded once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from math import isnan
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.continuations import BeamSearch, Continuations, Finished, Sampling
from persistcal.answers.token_trees import (
    Answered,
    answer_queue,
    encode_prefix,
    shared_prefix_attention,
)
from persistcal.models.batches import Work, in_batches, unless_full, warn_of_little_memory
from persistcal.models.packing import n_common
from persistcal.models.vllm import VllmModel


class Beam(NamedTuple):
    """One answer; its measures are means over tokens, see `measure_distributions`."""

    text: str  # up to the first newline or end token; often starts with a space, can be empty
    logprob: float  # summed over its tokens, including the end token
    n_tokens: int
    entropy: float | None  # None with vLLM
    self_certainty: float | None  # None with vLLM
    margin: float | None
    min_logprob: float | None  # lowest log-probability of a token


def eos_tokens(model: PreTrainedModel | VllmModel) -> list[int]:
    """Return the end-of-sequence tokens that `generate` would stop at."""
    eos = model.generation_config.eos_token_id if model.generation_config else None
    return [] if eos is None else [eos] if isinstance(eos, int) else list(eos)


def ending_tokens(
    model: PreTrainedModel | VllmModel,
    tokenizer: PreTrainedTokenizerBase,
    eos: list[int],
    *,
    one_line: bool = True,
) -> Tensor:
    """Return whether each token ends a beam: it is in `eos` or, `one_line`, has a newline."""
    if isinstance(model, VllmModel):
        vocab_size = model.vocab_size
    else:
        vocab_size = model.get_output_embeddings().weight.shape[0]
    ids = range(min(len(tokenizer), vocab_size))
    texts = tokenizer.batch_decode([[i] for i in ids], clean_up_tokenization_spaces=False)
    ends = torch.zeros(vocab_size, dtype=torch.bool)
    ends[[i for i in ids if one_line and "\n" in texts[i]] + eos] = True
    return ends.to(model.device)


def beams_of(
    finished: Finished,
    tokenizer: PreTrainedTokenizerBase,
    eos: list[int],
    *,
    one_line: bool = True,
) -> list[list[Beam]]:
    """Decode the finished beams of each question, up to the first newline or all of them."""
    beams: list[list[Beam]] = []
    skipped = {-1, *eos}
    score, summary, tokens = (part.cpu() for part in finished)
    lengths = (tokens >= 0).sum(dim=2)
    summary[..., :3] /= lengths[..., None]
    columns = (part.tolist() for part in (tokens, score, lengths, summary))
    for sequences, *fields in zip(*columns, strict=True):
        kept = [[token for token in tokens if token not in skipped] for tokens in sequences]
        texts = tokenizer.batch_decode(kept, skip_special_tokens=True)
        beams.append([])
        for text, logprob, n_tokens, values in zip(texts, *fields, strict=True):
            text = text.split("\n", 1)[0] if one_line else text
            measures = (None if isnan(value) else value for value in values)
            if logprob > -torch.inf:
                beams[-1].append(Beam(text, logprob, n_tokens, *measures))
    return beams


MOST = 128  # questions that are decoded together
QUEUE = 4  # times as many are given to a shard, and remembered, together
TYPICAL = 30  # expected tokens of an answer; longer ones can require smaller batches


@dataclass(frozen=True)
class Draw:
    """Settings of sampling, see `Sampling`."""

    temperature: float
    top_p: float
    seed: int


@dataclass(frozen=True)
class Search:
    """Settings of the search for answers.

    `memory_gb`, for keys, values and logits, is a fixed setting and not the free memory,
    because in bfloat16 the last bits depend on the questions decoded together.
    """

    n_beams: int = 10  # fewer result only from a vocabulary of fewer than twice as many tokens
    max_new_tokens: int = 100
    draw: Draw | None = None  # instead of searching for beams, draw `n_beams` samples
    batch_size: int | Literal["auto"] = "auto"  # as many as fit into `memory_gb`, at most 128
    memory_gb: float = 16.0
    one_line: bool = True  # whether a newline ends a beam


@torch.inference_mode()
def generate_beams(
    model: PreTrainedModel | VllmModel,
    tokenizer: PreTrainedTokenizerBase,
    prefix: str,
    suffixes: Sequence[str],
    search: Search = Search(),
    *,
    add_special_tokens: bool = True,
    progress: Callable[[int], object] | None = None,
    work: Work = Work(),  # noqa: B008 - immutable
) -> list[list[Beam]]:
    r"""Answer each prompt ``prefix + suffix`` with beams that end at their first newline.

    Texts and scores are those of transformers'
    ``generate(num_beams=n_beams, num_return_sequences=n_beams, length_penalty=0.0,
    early_stopping=False, do_sample=False, stop_strings=["\n"])`` on one prompt at a
    time [1]_, for every batch size; `BeamSearch` describes the algorithm. The common
    first tokens of all prompts are encoded once.

    `model` is of transformers and accepts custom attention functions, such as Olmo-3, Llama
    and Qwen3, or is any model that vLLM runs. The tokenizer adds no special tokens to prompts
    of a chat template, which contain them. `progress` is called with the number of questions of
    each finished part of `work`.

    Beams are best first, samples in the drawn order. A suffix that is not part of `work` has
    none. Beams with the same text but different tokens stay separate. If a single question does
    not fit into GPU memory, a `MemoryError` is raised; larger batches are halved.

    References
    ----------
    .. [1] Beam search of transformers' `generate`:
       https://huggingface.co/docs/transformers/main_classes/text_generation
    """
    if not suffixes:
        return []
    if search.draw and isinstance(model, VllmModel):
        raise ValueError("Samples are drawn with decoding.backend transformers, not vllm.")
    texts = [prefix + suffix for suffix in suffixes]
    prompts = tokenizer(texts, add_special_tokens=add_special_tokens)["input_ids"]
    if not all(prompts):
        raise ValueError(f"prompt {prompts.index([])} has no tokens; give it some text.")
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    eos = eos_tokens(model)
    ends = ending_tokens(model, tokenizer, eos, one_line=search.one_line)

    def begin(questions: Sequence[int]) -> Continuations:
        how: dict[str, Any] = {"max_new_tokens": search.max_new_tokens, "ends": ends}
        n = search.n_beams
        if search.draw:
            return Sampling(
                [suffixes[i] for i in questions], n_samples=n, **how, **asdict(search.draw)
            )
        n_candidates = max(2, 1 + len(eos)) * n
        return BeamSearch(len(questions), n_beams=n, n_candidates=n_candidates, **how)

    with _answering(model, prompts, search, begin) as (answer, size):

        def decode(part: list[int]) -> list[list[list]]:
            found: dict[int, list[Beam]] = {}
            for numbers, finished in answer(part):
                beams = beams_of(finished, tokenizer, eos, one_line=search.one_line)
                found |= dict(zip(numbers, beams, strict=True))
            return [[*map(list, found[number])] for number in range(len(part))]

        answers = in_batches(decode, by_length, batch_size=size, work=work, progress=progress)
    return [[Beam(*beam) for beam in answers.get(i, [])] for i in range(len(prompts))]


@contextmanager
def _answering(
    model: PreTrainedModel | VllmModel,
    prompts: list[list[int]],
    search: Search,
    begin: Callable[[Sequence[int]], Continuations],
) -> Iterator[tuple[Callable[[list[int]], list[Answered]], int]]:
    """Yield a function that answers the prompts of given numbers, and how many to give it."""
    if isinstance(model, VllmModel):
        size = MOST if search.batch_size == "auto" else search.batch_size
        yield partial(_answer_with_vllm, model, prompts, begin), size
        return
    starts = [prompt[:-1] for prompt in prompts]
    n_shared = n_common(min(starts), max(starts))
    n_tokens = max(map(len, prompts)) - n_shared
    n_tokens += search.n_beams * min(search.max_new_tokens, TYPICAL)
    at_once = n_at_once(model, search, len(prompts), n_tokens, search.n_beams)

    def answer(part: list[int]) -> list[Answered]:
        def begin_some(numbers: range) -> Continuations:
            return begin([part[number] for number in numbers])

        suffixes = [prompts[i][n_shared:] for i in part]
        n = min(at_once, len(part))
        while True:
            run = partial(answer_queue, model, shared, suffixes, begin_some, n)
            if (answered := unless_full(run, n)) is not None:
                return answered
            n = (n + 1) // 2

    with shared_prefix_attention(model):
        shared = encode_prefix(model, prompts[0][:n_shared])
        yield answer, QUEUE * at_once


def _answer_with_vllm(
    model: VllmModel,
    prompts: list[list[int]],
    begin: Callable[[Sequence[int]], Continuations],
    part: list[int],
) -> list[Answered]:
    """Answer prompts; vLLM's prefix cache contains the tokens of earlier steps."""
    search = begin(part)
    assert isinstance(search, BeamSearch)
    while len(search.question):
        beams = zip(search.question.tolist(), search.tokens.tolist(), strict=True)
        texts = [prompts[part[question]] + tokens for question, tokens in beams]
        search.extend(*model.next_tokens(texts, search.n_candidates))
    return [(list(range(len(part))), search.leave())]


def n_at_once(
    model: PreTrainedModel, search: Search, n_prompts: int, n_tokens: int, n_rows: int
) -> int:
    """Return how many questions go together, each of `n_tokens` and logits of `n_rows`."""
    if search.batch_size != "auto":
        return search.batch_size
    per_question = bytes_of_a_question(model, n_tokens, n_rows)
    fit = int(search.memory_gb * 1e9 / per_question)
    at_once = max(1, min(MOST, n_prompts, fit))
    warn_of_little_memory(model.device, at_once * per_question)
    return at_once


def bytes_of_a_question(model: PreTrainedModel, n_tokens: int, n_beams: int) -> int:
    """Return the bytes of keys and values of `n_tokens` tokens, and of logits per beam.

    Logits are there as the model returns them, in float32 before and after normalisation, and
    for the entropy.
    """
    config = model.config
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    n_kv = getattr(config, "num_key_value_heads", None) or heads
    per_token = 2 * config.num_hidden_layers * n_kv * head_dim * model.dtype.itemsize
    return n_tokens * per_token + n_beams * 5 * 4 * config.vocab_size

"""Short answers by beam search or sampling, and log-probabilities of given options.

The few-shot prefix is encoded once for all questions. All options of a question are in one
tree, their common start once, so that a question takes one forward pass.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.continuations import (
    BeamSearch,
    Continuations,
    Finished,
    Sampling,
    rank_tokens,
)
from persistcal.answers.queue import Answered, answer_queue
from persistcal.answers.slots import Layer, SharedPrefix, Slots, slot_attention
from persistcal.models.batches import Work, in_batches, unless_full, warn_of_little_memory
from persistcal.models.packing import make_tree, n_common
from persistcal.models.sizes import MOST, TYPICAL, question_bytes, questions_at_once, shape_of
from persistcal.models.vllm import VllmModel

log = logging.getLogger(__name__)


class Beam(NamedTuple):
    """An answer, with means over its tokens, see `RankedTokens`."""

    text: str  # up to the first newline or end token; often starts with a space, can be empty
    logprob: float  # summed over its tokens, including the end token
    n_tokens: int
    entropy: float | None  # None with vLLM
    self_certainty: float | None  # None with vLLM
    margin: float | None
    min_logprob: float | None  # lowest log-probability of a token
    unconditional: float | None = None  # of an option, its log-probability without the question


def eos_tokens(model: PreTrainedModel | VllmModel) -> list[int]:
    """Return the end-of-sequence tokens that `generate` would stop at."""
    eos = model.generation_config.eos_token_id if model.generation_config else None
    return [] if eos is None else [eos] if isinstance(eos, int) else list(eos)


# Settings of a generation config that change the likelihoods or tokens of `generate`, with the
# values that do not. The second table has settings that only apply to samples.
PROCESSORS = {
    **dict.fromkeys(["repetition_penalty", "encoder_repetition_penalty", "guidance_scale"], 1),
    **dict.fromkeys(["no_repeat_ngram_size", "encoder_no_repeat_ngram_size"], 0),
    **dict.fromkeys(["min_length", "min_new_tokens", "sequence_bias", "bad_words_ids"], 0),
    **dict.fromkeys(["exponential_decay_length_penalty", "watermarking_config"], 0),
    **dict.fromkeys(["forced_bos_token_id", "forced_eos_token_id", "suppress_tokens"]),
    **dict.fromkeys(["begin_suppress_tokens", "token_healing", "penalty_alpha", "dola_layers"]),
}
WARPERS = {
    "typical_p": 1,
    **dict.fromkeys(["top_k", "top_h", "min_p", "epsilon_cutoff", "eta_cutoff"], 0),
}


def ignored_settings(config: Any, *, is_drawn: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return settings of a model's generation config that `generate` uses and answers ignore.

    Likelihoods of answers are the model's own, which can be compared over checkpoints.
    """
    inactive: Mapping[str, Any] = {**PROCESSORS, **(WARPERS if is_drawn else {})}
    values = {name: getattr(config, name, None) for name in inactive}
    return {
        name: value
        for name, value in values.items()
        if not (value is None or value is False or value in ([], inactive[name]))
    }


@cache  # once in a job, which can decode many groups of prompts
def _say_ignored(source: str, settings: str) -> None:
    log.warning(
        "generation_config.json of %s sets %s, which is ignored: answers have the likelihoods "
        "of the model itself",
        source,
        settings,
    )


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
    lines = newline_tokens(tokenizer, len(tokenizer)) if one_line else []
    ends = torch.zeros(vocab_size, dtype=torch.bool)
    ends[[i for i in lines if i < vocab_size] + eos] = True
    return ends.to(model.device)


@lru_cache(maxsize=4)
def newline_tokens(tokenizer: PreTrainedTokenizerBase, size: int) -> list[int]:
    """Return the tokens with a newline among the first `size` ones."""
    texts = tokenizer.batch_decode(
        [[i] for i in range(size)], clean_up_tokenization_spaces=False
    )
    return [i for i, text in enumerate(texts) if "\n" in text]


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
            measures = (None if math.isnan(value) else value for value in values)
            if logprob > -torch.inf:
                beams[-1].append(Beam(text, logprob, n_tokens, *measures))
    return beams


QUEUE = 4  # times as many are given to a shard, and remembered, together


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
    batch_size: int | Literal["auto"] = "auto"  # the most that fit into `memory_gb`, up to 128
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

    Texts and scores equal transformers' ``generate(num_beams=n_beams,
    num_return_sequences=n_beams, length_penalty=0.0, early_stopping=False, do_sample=False,
    stop_strings=["\n"])`` on one prompt at a time [1]_, for every batch size, of a model whose
    generation config has no `ignored_settings`, such as a penalty for repetitions; `BeamSearch`
    describes the algorithm. The common first tokens of all prompts are encoded once.

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
    texts = [prefix + suffix for suffix in suffixes]
    prompts = tokenizer(texts, add_special_tokens=add_special_tokens)["input_ids"]
    if not all(prompts):
        raise ValueError(f"prompt {prompts.index([])} has no tokens; give it some text.")
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    eos = eos_tokens(model)
    ends = ending_tokens(model, tokenizer, eos, one_line=search.one_line)
    if ignored := ignored_settings(model.generation_config, is_drawn=search.draw is not None):
        listed = ", ".join(f"{name}: {value!s:.80}" for name, value in ignored.items())
        _say_ignored(getattr(model, "name_or_path", "") or "the model", listed)

    def begin(questions: Sequence[int]) -> Continuations:
        settings: dict[str, Any] = {"max_new_tokens": search.max_new_tokens, "ends": ends}
        n = search.n_beams
        if search.draw:
            return Sampling(
                [suffixes[i] for i in questions], n_samples=n, **settings, **asdict(search.draw)
            )
        n_candidates = max(2, 1 + len(eos)) * n
        return BeamSearch(len(questions), n_beams=n, n_candidates=n_candidates, **settings)

    with _answering(model, prompts, search, begin) as (answer, size):

        def decode(part: list[int]) -> list[list[list]]:
            by_number: dict[int, list[Beam]] = {}
            for numbers, finished in answer(part):
                beams = beams_of(finished, tokenizer, eos, one_line=search.one_line)
                by_number |= dict(zip(numbers, beams, strict=True))
            return [[*map(list, by_number[number])] for number in range(len(part))]

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

    with slot_attention(model):
        shared = SharedPrefix(model, prompts[0][:n_shared], n_tokens)
        yield answer, QUEUE * at_once


def _answer_with_vllm(
    model: VllmModel,
    prompts: list[list[int]],
    begin: Callable[[Sequence[int]], Continuations],
    part: list[int],
) -> list[Answered]:
    """Answer prompts; vLLM's prefix cache contains the tokens of earlier steps of a search."""
    search, everybody = begin(part), list(range(len(part)))
    if isinstance(search, Sampling):
        return [(everybody, _draw_with_vllm(model, [prompts[i] for i in part], search))]
    assert isinstance(search, BeamSearch)
    while len(rows := search.is_growing.flatten().nonzero()[:, 0]):
        numbers = (rows // search.n_answers).tolist()
        beams = zip(numbers, search.tokens.flatten(0, 1)[rows].tolist(), strict=True)
        texts = [prompts[part[i]] + [t for t in tokens if t >= 0] for i, tokens in beams]
        search.extend(*model.next_tokens(texts, search.n_candidates), rows=rows)
    return [(everybody, search.finished(everybody))]


def _draw_with_vllm(model: VllmModel, prompts: list[list[int]], sampling: Sampling) -> Finished:
    """Draw the samples of each prompt in one request; entropy and the like are unknown."""
    drawn = model.draw(
        prompts,
        sampling.keys[:, 0].tolist(),
        sampling.ends.nonzero()[:, 0].tolist(),
        n=sampling.n_answers,
        max_tokens=sampling.max_new_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
    )
    rows = [sample for samples in drawn for sample in samples]
    lacking = [-1] * sampling.max_new_tokens
    tokens = [(sample.tokens + lacking)[: sampling.max_new_tokens] for sample in rows]
    measured = [(math.nan, math.nan, s.margin, min(s.logprobs)) for s in rows]
    shape = len(prompts), sampling.n_answers, -1
    return Finished(
        torch.tensor([sum(sample.logprobs) for sample in rows]).view(*shape[:2]),
        torch.tensor(measured).view(*shape),
        torch.tensor(tokens).view(*shape),
    )


def n_at_once(
    model: PreTrainedModel, search: Search, n_prompts: int, n_tokens: int, n_rows: int
) -> int:
    """Return how many questions go together, each of `n_tokens` and logits of `n_rows`."""
    if search.batch_size != "auto":
        return search.batch_size
    per_question = bytes_of_a_question(model, n_tokens, n_rows)
    at_once = questions_at_once(per_question, search.memory_gb, n_prompts)
    warn_of_little_memory(model.device, at_once * per_question)
    return at_once


def bytes_of_a_question(model: PreTrainedModel, n_tokens: int, n_beams: int) -> int:
    """Return `persistcal.models.sizes.question_bytes` of a model."""
    return question_bytes(shape_of(model.config), n_tokens, n_beams, model.dtype.itemsize)


class Choice(NamedTuple):
    """Token ids of the prompt of a question, and of each option."""

    context: list[int]
    options: list[list[int]]


def encode_choice(
    tokenizer: PreTrainedTokenizerBase, context: str, options: Sequence[str], *, chat: bool
) -> Choice:
    """Return the tokens of a question and its options as lm-evaluation-harness splits them.

    Context and option are encoded together, and split after as many tokens as the context
    has. White space at the end of the context belongs to the options. A prompt of a `chat`
    contains the special tokens, and its answer has no space in front.
    """
    prompt = context.rstrip()
    between = context[len(prompt) :] + ("" if chat else " ")
    texts = [prompt, *(prompt + between + option for option in options)]
    context_tokens, *wholes = tokenizer(texts, add_special_tokens=not chat)["input_ids"]
    choice = Choice(context_tokens, [whole[len(context_tokens) :] for whole in wholes])
    if not context_tokens or not all(choice.options):
        empty = options[choice.options.index([])] if context_tokens else ""
        raise ValueError(
            f"option {empty!r} of the question that ends in {prompt[-60:]!r} adds no token to "
            "it, so that it has no log-probability; reword it or the question"
        )
    return choice


@torch.inference_mode()
def score_options(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    contexts: Sequence[str],
    options: Sequence[Sequence[str]],
    search: Search,
    *,
    chat: bool = False,
    progress: Callable[[int], object] | None = None,
    work: Work = Work(),  # noqa: B008 - immutable
) -> list[list[Beam]]:
    """Return the options of each question with their summed log-probabilities.

    `model`, `progress` and `work` are as in `generate_beams`.
    `contexts` are complete prompts; `search` determines the number of questions per batch.
    Equal to lm-evaluation-harness 0.4.13: ``loglikelihood`` of (context, " " + option), and
    of ("", " " + option) for `unconditional`.
    """
    if not contexts:
        return []
    asked = [
        encode_choice(tokenizer, context, texts, chat=chat)
        for context, texts in zip(contexts, options, strict=True)
    ]
    begin = tokenizer.bos_token_id
    begin = tokenizer.eos_token_id if begin is None else begin
    single_tokens = []  # options after the token that begins (or ends) texts, if there is one
    for texts in options if begin is not None else []:
        spaced = [option if chat else f" {option}" for option in texts]
        encoded = tokenizer(spaced, add_special_tokens=False)["input_ids"]
        single_tokens.append(Choice([begin], encoded))
    starts = [choice.context[:-1] for choice in asked]
    n_shared = n_common(min(starts), max(starts))
    longest = max(len(c.context) - n_shared + sum(map(len, c.options)) for c in asked)
    rows = 1 + max(sum(map(len, choice.options)) for choice in asked)
    size = n_at_once(model, search, len(asked), longest, rows)

    with slot_attention(model):
        shared = SharedPrefix(model, asked[0].context[:n_shared])

        def compute(part: list[int]) -> list[list[list]]:
            scored = _score(model, shared.layers, [asked[i] for i in part])
            if not single_tokens:
                return [[[*row, None] for row in rows] for rows in scored]
            scored_alone = _score(model, [], [single_tokens[i] for i in part])
            return [
                [[*row, row_alone[0]] for row, row_alone in zip(*question, strict=True)]
                for question in zip(scored, scored_alone, strict=True)
            ]

        order = sorted(range(len(asked)), key=lambda i: len(asked[i].context))
        numbers = in_batches(compute, order, batch_size=size, work=work, progress=progress)
    return [
        [Beam(text, *row) for text, row in zip(texts, numbers[i], strict=True)]
        if i in numbers
        else []
        for i, texts in enumerate(options)
    ]


def _score(
    model: PreTrainedModel, prefix: list[Layer], choices: Sequence[Choice]
) -> list[list[tuple[float, ...]]]:
    """Return the numbers of each option as `Beam` has them, but the last one."""
    n_prefix = prefix[0][0].shape[1] if prefix else 0
    prompts = [
        [(*choice.context[n_prefix:], *option) for option in choice.options]
        for choice in choices
    ]
    trees = [make_tree(sorted(choices_of)) for choices_of in prompts]
    lengths = [len(tree.token_ids) for tree in trees]
    starts = [0, *accumulate(lengths)]
    seen = np.zeros((max(lengths), len(trees), max(lengths), 1), dtype=bool)
    steps: list[tuple[int, int]] = []  # a row, and the token that follows it in an option
    owners: list[list[slice]] = []
    for slot, (tree, choices_of, choice) in enumerate(
        zip(trees, prompts, choices, strict=True)
    ):
        place = np.arange(len(tree.token_ids))
        path = (place <= place[:, None]) & (np.array(tree.until) > place[:, None])
        seen[: len(place), slot, : len(place), 0] = path
        ends = dict(zip(sorted(choices_of), tree.ends, strict=True))
        slices = []
        for prompt, option in zip(choices_of, choice.options, strict=True):
            predecessors = np.flatnonzero(path[ends[prompt]])[-len(option) - 1 : -1]
            first = len(steps)
            steps += zip((starts[slot] + predecessors).tolist(), option, strict=True)
            slices.append(slice(first, len(steps)))
        owners.append(slices)

    def there(values: Sequence[int] | np.ndarray) -> Tensor:
        return torch.as_tensor(values, device=model.device)

    slots = Slots(prefix, lengths, model.device)
    slots.seen = there(seen)
    position = np.concatenate([tree.positions for tree in trees]) + n_prefix
    rows = sorted({row for row, _ in steps})
    tokens = there([token for tree in trees for token in tree.token_ids])
    logits = slots.forward(model, tokens, there(position), kept=rows)
    ranked = rank_tokens(logits, 2)
    row = there(np.searchsorted(rows, [row for row, _ in steps]))
    of_token = logits[row, there([token for _, token in steps])].float() - ranked.total[row]
    logprobs, measured = of_token.tolist(), ranked.measured[row].T.tolist()

    def numbers(s: slice) -> tuple[float, ...]:
        n, least = s.stop - s.start, min(logprobs[s])
        means = (math.fsum(measure[s]) / n for measure in measured)
        return math.fsum(logprobs[s]), n, *means, least

    return [[numbers(s) for s in part] for part in owners]

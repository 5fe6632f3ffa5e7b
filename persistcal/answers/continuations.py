"""Answers that grow token by token: beam search and sampling, for a batch of questions at once.

All tensors have a slot for each question and a row in it for each answer that grows. A step
changes them in place and waits for no device, so that it can be captured as a CUDA graph.

The random numbers of samples depend on question, sample and step only. They are integers of
torch, so their bits are the same on all devices.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

N_MEASURES = 4


class Storage:
    """Tensors by name, each at the same address as long as it does not outgrow its memory."""

    def __init__(self) -> None:
        self._flat: dict[object, Tensor] = {}
        self.n_moved = 0  # how often a tensor got a new address

    def shaped(self, name: object, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return the memory of a tensor in another shape, with the old numbers."""
        size = math.prod(shape)
        if name not in self._flat or len(self._flat[name]) < size:
            self._flat[name] = like.new_zeros(size)
            self.n_moved += 1
        return self._flat[name][:size].view(*shape)


class Finished(NamedTuple):
    """Answers of some questions, by question and beam or sample.

    The score is the summed log-probability of an answer's tokens, -inf for a missing answer.
    The last axis of `summary` has the sums of entropy, self-certainty and margin of the tokens'
    distributions, and the lowest log-probability of a token; unknown values are NaN. `tokens`,
    of shape (n_questions, n_answers, max_new_tokens), is padded with -1.
    """

    score: Tensor
    summary: Tensor
    tokens: Tensor


class Continuations:
    """State of beam search and sampling: answers that grow, by slot and row.

    A row without an answer has the score -inf. `ends` are the tokens that end an answer, a bool
    for each of the vocabulary.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        *("token", "score", "summary", "age"),
        *("finished_score", "finished_summary", "finished_tokens"),
    )

    def __init__(
        self, n_questions: int, *, n_answers: int, max_new_tokens: int, ends: Tensor
    ) -> None:
        self.n_answers, self.max_new_tokens, self.ends = n_answers, max_new_tokens, ends
        shape = n_questions, n_answers
        self.score = torch.zeros(shape, device=ends.device)  # summed log-probability
        self.summary = self.score.new_zeros(*shape, N_MEASURES)
        self.age = torch.zeros(n_questions, dtype=torch.long, device=ends.device)
        self.token = self.age.new_zeros(shape)  # last token of each row
        self.finished_score = torch.full_like(self.score, -torch.inf)
        self.finished_summary = torch.zeros_like(self.summary)
        self.finished_tokens = self.age.new_full((*shape, max_new_tokens), -1)
        self.n_wrong = self.age.new_zeros(())  # rows with logits that are not finite
        self.storage = Storage()

    def advance(self, logits: Tensor, rows: Tensor | None = None) -> Tensor | None:
        """Continue answers by one token.

        `logits` has the shape (n_rows, vocab_size), for `rows` or all, numbered over all slots.
        At the first step it has one row for each slot. Returned is the former row of each row
        in its slot, or None if they have not moved.
        """
        raise NotImplementedError

    @property
    def is_growing(self) -> Tensor:
        """Whether each row has an answer that grows."""
        return self.score > -torch.inf

    def count_growing(self) -> list[int]:
        """Return the number of growing answers of each slot; it waits for the device."""
        *counts, n_wrong = torch.cat([self.is_growing.sum(dim=1), self.n_wrong[None]]).tolist()
        if n_wrong:
            raise FloatingPointError(
                "The model's logits are not finite, so they rank no token; use another dtype."
            )
        return counts

    def finished(self, slots: list[int]) -> Finished:
        """Return the answers of some slots."""
        names = "finished_score", "finished_summary", "finished_tokens"
        return Finished(*(getattr(self, name)[slots] for name in names))

    def rearrange(self, kept: Tensor, further: Self, n_slots: int) -> None:
        """Keep some slots; add the slots of `further`, and empty ones up to `n_slots`."""
        for name in self.STATE:
            own, new = getattr(self, name)[kept], getattr(further, name)
            changed = self.storage.shaped(name, (n_slots, *own.shape[1:]), own)
            changed[: len(own)], changed[len(own) : len(own) + len(new)] = own, new
            setattr(self, name, changed)
        self.score[len(kept) + len(further.score) :] = -torch.inf
        self.n_wrong += further.n_wrong


class BeamSearch(Continuations):
    """Beam search without length penalty. Some tokens end a beam.

    Each step considers the best `n_candidates` continuations of a question's live beams. A
    candidate that ends is finished if it is among the best `n_beams` candidates, and lost
    otherwise. The best `n_beams` candidates that do not end stay alive. The result is the best
    `n_beams` finished beams of all steps. All candidates end at step `max_new_tokens`.

    A live beam is dropped once `n_beams` beams are finished and it is not better than the
    worst of them. Log-probabilities only decrease, so neither this beam nor lower ones can
    change the result.

    The result equals `generate` of transformers with ``length_penalty=0.0`` and
    ``early_stopping=False``. That stopping heuristic compares the best live beam, as if
    finished at the current length, with the worst finished beam. Without a length penalty this
    is an exact bound, so ``early_stopping="never"`` gives the same result; only
    ``early_stopping=True``, which stops at the `n_beams`-th finished beam, differs. Two
    differences between `generate` and textbook beam search are kept, because published numbers
    were made by `generate`: ending candidates that rank after `n_beams` are lost, and live
    beams are among the best `n_candidates` only. The second one matters if many tokens contain
    a newline: if more than ``n_candidates - n_beams`` candidates end, fewer than `n_beams`
    beams stay alive, even if further continuations exist. If all end, the search stops.

    Live beams are first in their slot, from the best, and so are the finished ones.
    """

    STATE = (*Continuations.STATE, "tokens")

    def __init__(
        self,
        n_questions: int,
        *,
        n_beams: int,
        n_candidates: int,
        max_new_tokens: int,
        ends: Tensor,
    ) -> None:
        super().__init__(
            n_questions, n_answers=n_beams, max_new_tokens=max_new_tokens, ends=ends
        )
        self.n_candidates = n_candidates
        self.score[:, 1:] = -torch.inf
        self.tokens = torch.full_like(self.finished_tokens, -1)  # of the live beams

    def advance(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Continue every live beam by one token, and return the former row of each."""
        best, token, total, measured = rank_tokens(logits, self.n_candidates)
        return self.extend(best - total[:, None], token, measured, rows)

    def extend(
        self,
        logprob: Tensor,
        token: Tensor,
        measured: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Continue every live beam with a probable next token.

        `token` has `n_candidates` tokens of each row, from the likeliest, or all of a smaller
        vocabulary. `measured` is from `rank_tokens`; without it only the margin is known.
        `rows` and the result are as in `advance`.
        """
        if measured is None:
            margin = logprob[:, 0].exp() - logprob[:, 1].exp()
            unknown = torch.full_like(margin, torch.nan)
            measured = torch.stack([unknown, unknown, margin], dim=1)
        logprob, token, measured = (
            self._by_slot(values, rows) for values in (logprob, token, measured)
        )
        n_slots, n_beams, per_beam = logprob.shape
        self.n_wrong += (self.is_growing & logprob[..., 0].isnan()).sum()
        scores = (logprob + self.score[..., None]).masked_fill(
            ~self.is_growing[..., None], -torch.inf
        )
        score, index = scores.view(n_slots, -1).topk(self.n_candidates)
        parent = index // per_beam
        token = token.view(n_slots, -1).gather(1, index)
        logprob = logprob.view(n_slots, -1).gather(1, index)
        summary = summarise(pick(self.summary, parent), pick(measured, parent), logprob)

        ends = self.ends[token] | (self.age + 1 >= self.max_new_tokens)[:, None]
        top = slice(None), slice(n_beams)
        ended = score[top].masked_fill(~ends[top], -torch.inf)
        self._finish(ended, summary[top], self._longer(parent[top], token[top]))

        score, kept = score.masked_fill(ends, -torch.inf).topk(n_beams)
        dead = score <= self.finished_score[:, -1:]
        self.score.copy_(score.masked_fill_(dead, -torch.inf))
        parent, token = parent.gather(1, kept), token.gather(1, kept)
        self.token.copy_(token)
        self.tokens.copy_(self._longer(parent, token))
        self.summary.copy_(pick(summary, kept))
        self.age.add_(1).clamp_(max=self.max_new_tokens - 1)
        return parent

    def _by_slot(self, values: Tensor, rows: Tensor | None) -> Tensor:
        """Return values of `rows` by slot and row, with zeros in other rows."""
        n_slots, n_beams = self.score.shape
        if rows is not None:
            shape = n_slots * n_beams, values.shape[1]
            values = values.new_zeros(shape).index_copy_(0, rows, values)
        elif len(values) == n_slots:  # the first step
            values = values.repeat_interleave(n_beams, dim=0)
        return values.view(n_slots, n_beams, -1)

    def _longer(self, parent: Tensor, token: Tensor) -> Tensor:
        """Return the tokens of beams after a new token."""
        place = self.age[:, None, None].expand(*token.shape, 1)
        return pick(self.tokens, parent).scatter_(2, place, token[..., None])

    def _finish(self, score: Tensor, summary: Tensor, tokens: Tensor) -> None:
        """Merge new beams into the finished ones; unfinished beams have the score -inf."""
        scores = torch.cat([self.finished_score, score], dim=1)
        score, index = scores.topk(self.n_answers)
        self.finished_score.copy_(score)
        tokens = torch.cat([self.finished_tokens, tokens], dim=1)
        self.finished_tokens.copy_(pick(tokens, index))
        summary = torch.cat([self.finished_summary, summary], dim=1)
        self.finished_summary.copy_(pick(summary, index))


def pick(values: Tensor, index: Tensor) -> Tensor:
    """Return the entries of `values` at the places `index` along the second axis."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[2]))


BLOCK = 256  # tokens; a block is drawn, and then a token in it


class Sampling(Continuations):
    r"""Draw answers token by token, until an end token.

    At temperature :math:`T` a token has the probability softmax(logits / T), cut to the
    nucleus of `top_p`. The outcome :math:`i` with the highest :math:`\log p_i + g_i` is
    chosen, with independent standard Gumbel :math:`g_i`, which is a draw from :math:`p`
    [1]_. First a block of 256 neighbouring tokens is drawn by the blocks' probabilities, and
    then a token of the block, so that about 600 random numbers suffice for a vocabulary of
    100,000. The :math:`g` depend only on the seed, the question's text, the number of the
    sample and the step (`gumbel`), so batch sizes and shards change no result. Rounding can
    change the choice between two outcomes with sums that are equal to about six digits.
    Checkpoints share the :math:`g` of a question, so samples differ only because of the
    probabilities.

    Scores and summaries are of the probabilities at temperature 1 without a nucleus. Finished
    answers are by number of the sample.

    References
    ----------
    .. [1] Maddison, Tarlow and Minka, "A* Sampling", NeurIPS 2014.
    """

    STATE = (*Continuations.STATE, "keys")

    def __init__(
        self,
        texts: Sequence[str],
        *,
        n_samples: int,
        max_new_tokens: int,
        temperature: float,
        top_p: float,
        seed: int,
        ends: Tensor,
    ) -> None:
        super().__init__(
            len(texts), n_answers=n_samples, max_new_tokens=max_new_tokens, ends=ends
        )
        self.temperature, self.top_p = temperature, top_p
        keys = [question_key(seed, text) for text in texts]
        self.keys = torch.tensor(keys, dtype=torch.long, device=ends.device).view(-1, 2)

    def advance(self, logits: Tensor, rows: Tensor | None = None) -> None:
        """Continue every answer by one token."""
        ranked = rank_tokens(logits, 2)
        chance = nucleus((logits.float() / self.temperature).softmax(dim=1), self.top_p)
        if rows is None:
            rows = torch.arange(self.score.numel(), device=logits.device)
        # At the first step the samples of a question have one row of logits.
        source = torch.arange(len(rows), device=rows.device) // (len(rows) // len(logits))
        step = self.age[rows // self.n_answers]
        token = self._draw(chance, source, rows, step)
        logprob = logits[source, token].float() - ranked.total[source]
        score, summary = self.score.view(-1), self.finished_summary.view(-1, N_MEASURES)
        is_growing, former = score[rows] > -torch.inf, summary[rows]
        longer = score[rows] + logprob
        self.n_wrong += (is_growing & ~longer.isfinite()).sum()
        ended = self.ends[token] | (step + 1 >= self.max_new_tokens)
        score.index_copy_(0, rows, longer.masked_fill(ended, -torch.inf))
        self.token.view(-1).index_copy_(0, rows, token)
        # What is finished are the numbers of a row that grew last.
        finished = self.finished_score.view(-1)
        finished.index_copy_(0, rows, torch.where(is_growing, longer, finished[rows]))
        measured = summarise(former, ranked.measured[source], logprob)
        summary.index_copy_(0, rows, torch.where(is_growing[:, None], measured, former))
        tokens, place = self.finished_tokens.view(-1), rows * self.max_new_tokens + step
        tokens.index_copy_(0, place, torch.where(is_growing, token, tokens[place]))
        self.age.add_(1).clamp_(max=self.max_new_tokens - 1)

    def _draw(self, chance: Tensor, source: Tensor, rows: Tensor, step: Tensor) -> Tensor:
        """Return a token for each row, drawn by the probabilities of the row's `source`."""
        n_rows, size = chance.shape
        whole = size - size % BLOCK
        of_blocks = chance[:, :whole].view(n_rows, -1, BLOCK).sum(dim=2)
        rest = chance[:, whole:].sum(dim=1, keepdim=True)
        of_blocks = torch.cat([of_blocks, rest], dim=1).log()[source]
        n_numbers = BLOCK + of_blocks.shape[1]
        slot, sample = rows // self.n_answers, rows % self.n_answers
        noise = gumbel(self.keys[slot], sample, step, n_numbers)
        block = (of_blocks + noise[:, BLOCK:]).argmax(dim=1, keepdim=True)
        tokens = block * BLOCK + torch.arange(BLOCK, device=block.device)
        among = chance[source[:, None], tokens.clamp(max=size - 1)].log()
        among = among.masked_fill(tokens >= size, -torch.inf)
        inside = (among + noise[:, :BLOCK]).argmax(dim=1, keepdim=True)
        return tokens.gather(1, inside)[:, 0]


def question_key(seed: int, text: str) -> tuple[int, int]:
    """Return the key of a question's random numbers, two words of 32 bits."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


WORD = 2**32 - 1
MULTIPLIERS = 0xCD9E8D57, 0xD2511F53  # of the third and the first word
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox(counter: Sequence[Tensor], key: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return four words of 32 random bits for each counter.

    Philox4x32-10 is a counter-based generator: a hash of the counter (four words) with a key
    (two words), without a state [1]_. Words are tensors of int64, which broadcast.

    References
    ----------
    .. [1] Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """
    # Two words at a time: the second and fourth, and the third and first.
    first, *rest = torch.broadcast_tensors(*counter)
    odd, even = torch.stack(rest[::2]), torch.stack([rest[1], first])
    pair = torch.arange(2, device=first.device).view(2, *[1] * first.dim())
    factor, step = (
        pair * (second - start) + start for start, second in (MULTIPLIERS, KEY_STEPS)
    )
    number = torch.arange(ROUNDS, device=first.device)
    keys = torch.stack(list(key))[..., None] + number * step[..., None] & WORD
    for of_round in keys.unbind(-1):
        # int64 keeps the lower 64 bits of a product; the sign is masked.
        product = even * factor
        even = ((product >> 32 & WORD) ^ odd ^ of_round).flip(0)
        odd = product & WORD
    return even[1], odd[0], even[0], odd[1]


def gumbel(keys: Tensor, samples: Tensor, steps: Tensor, size: int) -> Tensor:
    """Return standard Gumbel noise, `size` numbers for each sample's next token.

    A row has the key of the question, the number of the sample and the number of the next
    token; a longer sequence extends a shorter one. Each number is made of 23 bits, which
    float32 represents exactly. The numbers are between -2.8 and 16.6; a Gumbel number
    exceeds 16.6 once in 17 million times.
    """
    first, second = keys[:, :1], keys[:, 1:]
    place = torch.arange(-(-size // 4), device=keys.device)
    zero = torch.zeros_like(place)
    bits = philox((place, steps[:, None], samples[:, None], zero), (first, second))
    uniform = ((torch.stack(bits, dim=2).flatten(1)[:, :size] >> 9) + 0.5) * 2.0**-23
    return uniform.log().neg().log().neg()


def nucleus(chance: Tensor, top_p: float) -> Tensor:
    """Set to 0 all but the fewest likeliest tokens that have `top_p` together.

    Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020.
    """
    if top_p == 1:
        return chance
    ranked, order = chance.sort(dim=1, descending=True, stable=True)
    mass_above = ranked.cumsum(dim=1) - ranked
    cut = torch.zeros_like(chance, dtype=torch.bool).scatter(1, order, mass_above >= top_p)
    return chance.masked_fill(cut, 0.0)


class RankedTokens(NamedTuple):
    """The likeliest next tokens of each row, and measures of all next tokens.

    A logit less `total` is a log-probability. `measured` has the columns entropy,
    self-certainty and margin. Self-certainty is the Kullback-Leibler divergence in nats of the
    uniform distribution over the possible tokens from the row's distribution. The margin is the
    difference between the two greatest probabilities.
    """

    logits: Tensor
    token: Tensor
    total: Tensor
    measured: Tensor


def rank_tokens(logits: Tensor, n: int) -> RankedTokens:
    """Return the `n` likeliest tokens of each row, or all of a smaller vocabulary.

    >>> rank_tokens(torch.tensor([[0.5, 0.25, 0.25]]).log(), 2).measured.round(decimals=4)
    tensor([[1.0397, 0.0566, 0.2500]])
    """
    logits = logits.float()
    best, token = logits.topk(min(n, logits.shape[1]))
    chance = logits.softmax(dim=1)
    first, second = chance.gather(1, token[:, :2]).unbind(1)
    total = best[:, 0] - first.log()
    n_possible = (logits > -torch.inf).sum(dim=1)
    possible = logits.nan_to_num(nan=torch.nan, posinf=torch.inf, neginf=0.0)
    certainty = total - possible.sum(dim=1) / n_possible - n_possible.log()
    entropy = total - (chance * possible).sum(dim=1)
    return RankedTokens(
        best, token, total, torch.stack([entropy, certainty, first - second], dim=1)
    )


def summarise(summary: Tensor, measured: Tensor, logprob: Tensor) -> Tensor:
    """Return the summaries of answers that are one token longer, with its measures."""
    least = torch.minimum(summary[..., 3], logprob)
    return torch.cat([summary[..., :3] + measured, least[..., None]], dim=-1)

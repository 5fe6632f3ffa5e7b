"""Answers that grow token by token: beam search and sampling, for a batch of questions at once.

The random numbers of samples depend on question, sample and step only. They are integers of
torch, so their bits are the same on all devices.
"""

import hashlib
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

N_MEASURES = 4


class Finished(NamedTuple):
    """Answers of some questions, by question and beam or sample.

    The score is the summed log-probability of an answer's tokens, -inf for a missing answer.
    The last axis of `summary` has the sums of entropy, self-certainty and margin of the tokens'
    distributions, and the lowest log-probability of a token; unknown values are NaN. `tokens`,
    of shape (n_questions, n_answers, n_steps), is padded with -1.
    """

    score: Tensor
    summary: Tensor
    tokens: Tensor


class Continuations:
    """State of beam search and sampling, by question and by row: an answer that grows.

    At first each question has one empty row. `ends` are the tokens that end an answer, a bool
    for each of the vocabulary.
    """

    OF_ROWS: ClassVar[tuple[str, ...]] = ("token", "score", "summary")
    OF_QUESTIONS: ClassVar[tuple[str, ...]] = (
        *("begun", "finished_score", "finished_summary", "finished_tokens"),
    )
    token: Tensor  # last token of each row
    finished_tokens: Tensor  # tokens of the answers in `finished_score`, padded with -1

    def __init__(
        self, n_questions: int, *, n_answers: int, max_new_tokens: int, ends: Tensor
    ) -> None:
        self.n_answers, self.max_new_tokens, self.ends = n_answers, max_new_tokens, ends
        self.question = torch.arange(n_questions, device=ends.device)  # of each row, ascending
        self.left = [1] * n_questions  # rows of each question, without waiting for the device
        self.n_steps = 0
        self.begun = torch.zeros_like(self.question)  # number of each question's first step
        self._begun = [0] * n_questions
        self.score = torch.zeros(n_questions, device=ends.device)  # summed log-probability
        self.summary = self.score.new_zeros(n_questions, N_MEASURES)
        shape = n_questions, n_answers
        self.finished_score = self.score.new_full(shape, -torch.inf)
        self.finished_summary = self.score.new_zeros(*shape, N_MEASURES)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every row by one token, and return the former row of each.

        `logits` has the shape (n_rows, vocab_size).
        """
        raise NotImplementedError

    def ends_now(self) -> Tensor | None:
        """Return the questions with answers that end at this step, or None."""
        first = self.n_steps + 1 - self.max_new_tokens
        return self.begun == first if first in self._begun else None

    def leave(self) -> Finished:
        """Drop the questions without rows, renumber the others, and return the answers."""
        n_done = self.left.count(0)
        has_rows = torch.zeros_like(self.begun).index_fill_(0, self.question, 1)
        order = has_rows.argsort(stable=True)
        done, kept = order[:n_done], order[n_done:]
        finished = Finished(
            self.finished_score[done], self.finished_summary[done], self.finished_tokens[done]
        )
        self.question = torch.searchsorted(kept, self.question)
        for name in self.OF_QUESTIONS:
            setattr(self, name, getattr(self, name)[kept])
        self._begun = [b for b, left in zip(self._begun, self.left, strict=True) if left]
        self.left = list(filter(None, self.left))
        return finished

    def join(self, other: Self) -> None:
        """Append the questions of `other`, which began later."""
        later = self.n_steps - other.n_steps
        other.begun = other.begun + later
        self.question = torch.cat([self.question, other.question + len(self.left)])
        for name in (*self.OF_ROWS, *self.OF_QUESTIONS):
            own_values, other_values = getattr(self, name), getattr(other, name)
            if own_values.shape[1:] != other_values.shape[1:]:  # tokens, one column a step
                other_values = pad(
                    other_values, (own_values.shape[-1] - other_values.shape[-1], 0), value=-1
                )
            setattr(self, name, torch.cat([own_values, other_values]))
        self._begun += [begun + later for begun in other._begun]
        self.left += other.left


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

    Rows are live beams, by question and then from the best, and so are the finished ones.
    """

    OF_ROWS = (*Continuations.OF_ROWS, "beam", "tokens")

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
        self.beam = torch.zeros_like(self.question)
        # Tokens of each live beam; -1 at steps before its question's first.
        self.tokens = self.question.new_empty(n_questions, 0)
        self.finished_tokens = self.question.new_empty(n_questions, n_beams, 0)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every live beam by one token, and return the former row of each."""
        logits = logits.float()
        token = logits.topk(min(self.n_candidates, logits.shape[1])).indices
        logprob = logits.log_softmax(dim=1)
        return self.extend(logprob.gather(1, token), token, measure_distributions(logprob))

    def extend(self, logprob: Tensor, token: Tensor, measured: Tensor | None = None) -> Tensor:
        """Continue every live beam with one of the most probable next tokens.

        `token` has `n_candidates` tokens of each row, from the likeliest, or all of a smaller
        vocabulary. `measured` is from `measure_distributions`; without it only the margin is
        known. Returned is the former row of each.
        """
        n_questions, n_beams = self.finished_score.shape
        if measured is None:
            margin = logprob[:, 0].exp() - logprob[:, 1].exp()
            unknown = torch.full_like(margin, torch.nan)
            measured = torch.stack([unknown, unknown, margin], dim=1)
        best = logprob + self.score[:, None]
        per_beam = best.shape[1]
        shape = (n_questions, n_beams, per_beam)
        grid = best.new_full(shape, -torch.inf).index_put_((self.question, self.beam), best)
        row = self.question.new_zeros(shape[:2])
        row[self.question, self.beam] = torch.arange(len(best), device=row.device)
        score, index = grid.view(n_questions, -1).topk(self.n_candidates)
        parent = row.gather(1, index // per_beam)
        chosen = parent, index % per_beam
        summary = summarise(self.summary[parent], measured[parent], logprob[chosen])
        token = token[chosen]

        ends = self.ends[token]
        if (at_the_limit := self.ends_now()) is not None:
            ends = ends | at_the_limit[:, None]
        self.n_steps += 1
        top = (slice(None), slice(n_beams))
        tokens = torch.cat([self.tokens[parent[top]], token[top][..., None]], dim=2)
        ended = score[top].masked_fill(~ends[top], -torch.inf)
        self._finish(ended, summary[top], tokens)

        score, index = score.masked_fill(ends, -torch.inf).topk(n_beams)
        live = score > self.finished_score[:, -1:]
        self.left = live.sum(dim=1).tolist()  # waits for a GPU, so it is asked once
        place = live.flatten().nonzero_static(size=sum(self.left))[:, 0]
        self.question, self.beam = place // n_beams, place % n_beams
        kept = index[self.question, self.beam]
        self.score = score[self.question, self.beam]
        parent, self.token = parent[self.question, kept], token[self.question, kept]
        self.summary = summary[self.question, kept]
        self.tokens = torch.cat([self.tokens[parent], self.token[:, None]], dim=1)
        return parent

    def leave(self) -> Finished:
        """Drop the questions without live beams, and the steps before all others' first."""
        finished = super().leave()
        past = min(self._begun, default=self.n_steps)
        self.n_steps -= past
        self.begun = self.begun - past
        self._begun = [begun - past for begun in self._begun]
        self.tokens = self.tokens[:, past:]
        self.finished_tokens = self.finished_tokens[..., past:]
        return finished

    def _finish(self, score: Tensor, summary: Tensor, tokens: Tensor) -> None:
        """Merge new beams into the finished ones; unfinished beams have the score -inf."""
        scores = torch.cat([self.finished_score, score], dim=1)
        self.finished_score, index = scores.topk(self.n_answers)
        former = pad(self.finished_tokens, (0, 1), value=-1)
        tokens = torch.cat([former, tokens], dim=1)
        self.finished_tokens = tokens.take_along_dim(index[..., None], dim=1)
        summary = torch.cat([self.finished_summary, summary], dim=1)
        self.finished_summary = summary.take_along_dim(index[..., None], dim=1)


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

    OF_ROWS = (*Continuations.OF_ROWS, "sample")
    OF_QUESTIONS = (*Continuations.OF_QUESTIONS, "_keys")

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
        self._keys = torch.tensor(keys, device=ends.device)
        self.sample = torch.zeros_like(self.question)
        shape = len(texts), n_samples, max_new_tokens
        self.finished_tokens = self.question.new_full(shape, -1)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every answer by one token, and return the former row of each."""
        logits = logits.float()
        logprob = logits.log_softmax(dim=1)
        measured = measure_distributions(logprob)
        chance = nucleus((logits / self.temperature).softmax(dim=1), self.top_p)
        parent = torch.arange(len(logits), device=logits.device)
        if not self.n_steps:  # here a question's samples part
            n_questions = len(parent)
            parent = parent.repeat_interleave(self.n_answers)
            self.sample = torch.arange(self.n_answers, device=parent.device).repeat(n_questions)
        self.question = self.question[parent]
        step = self.n_steps - self.begun[self.question]
        self.token = self._draw(chance, parent, step)
        chosen = logprob[parent, self.token]
        self.score = self.score[parent] + chosen
        self.summary = summarise(self.summary[parent], measured[parent], chosen)

        ended = self.ends[self.token]
        if (at_the_limit := self.ends_now()) is not None:
            ended = ended | at_the_limit[self.question]
        self.n_steps += 1
        address = self.question, self.sample
        goes_on = ~ended
        self.finished_score[address] = self.score.masked_fill(goes_on, -torch.inf)
        self.finished_summary[address] = self.summary.masked_fill(goes_on[:, None], 0)
        self.finished_tokens[(*address, step)] = self.token
        counts = self.question.new_zeros(len(self._keys) + 1)
        counts.index_add_(0, self.question, goes_on.long())
        counts[-1:] += (self.score > -torch.inf).sum()
        *self.left, n_right = counts.tolist()  # waits for a GPU, so it is asked once
        if n_right < len(self.score):
            raise FloatingPointError(
                "The model's logits are not finite, so nothing can be drawn; use another dtype."
            )
        rows = goes_on.nonzero_static(size=sum(self.left))[:, 0]
        for name in ("question", *self.OF_ROWS):
            setattr(self, name, getattr(self, name)[rows])
        return parent[rows]

    def _draw(self, chance: Tensor, parent: Tensor, step: Tensor) -> Tensor:
        """Return a token for each row, drawn by its parent's probabilities."""
        n_rows, size = chance.shape
        whole = size - size % BLOCK
        of_blocks = chance[:, :whole].view(n_rows, -1, BLOCK).sum(dim=2)
        rest = chance[:, whole:].sum(dim=1, keepdim=True)
        of_blocks = torch.cat([of_blocks, rest], dim=1).log()[parent]
        n_numbers = BLOCK + of_blocks.shape[1]
        noise = gumbel(self._keys[self.question], self.sample, step, n_numbers)
        block = (of_blocks + noise[:, BLOCK:]).argmax(dim=1, keepdim=True)
        tokens = block * BLOCK + torch.arange(BLOCK, device=block.device)
        among = chance[parent[:, None], tokens.clamp(max=size - 1)].log()
        among = among.masked_fill(tokens >= size, -torch.inf)
        inside = (among + noise[:, :BLOCK]).argmax(dim=1, keepdim=True)
        return tokens.gather(1, inside)[:, 0]


def question_key(seed: int, text: str) -> tuple[int, int]:
    """Return the key of a question's random numbers, two words of 32 bits."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


WORD = 2**32 - 1
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
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
    a, b, c, d = counter
    number = torch.arange(ROUNDS, device=a.device)
    keys = (
        (word[..., None] + number * step & WORD).unbind(-1)
        for word, step in zip(key, KEY_STEPS, strict=True)
    )
    for first, second in zip(*keys, strict=True):
        # int64 keeps the lower 64 bits of a product; the sign is masked.
        left, right = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, c = (right >> 32 & WORD) ^ b ^ first, (left >> 32 & WORD) ^ d ^ second
        b, d = right & WORD, left & WORD
    return a, b, c, d


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


def entropies(logprob: Tensor) -> Tensor:
    """Return the entropy in nats of each row of log-probabilities.

    >>> entropies(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).log()).round(decimals=4)
    tensor([0.6931, -0.0000])
    """
    return -(logprob.exp() * logprob.clamp_min(torch.finfo(logprob.dtype).min)).sum(dim=1)


def measure_distributions(logprob: Tensor) -> Tensor:
    """Return entropy, self-certainty and margin of each row of log-probabilities.

    Self-certainty is the Kullback-Leibler divergence in nats of the uniform distribution over
    the tokens with a finite log-probability from the row's distribution. The margin is the
    difference between the two greatest probabilities.

    >>> measure_distributions(torch.tensor([[0.5, 0.25, 0.25]]).log()).round(decimals=4)
    tensor([[1.0397, 0.0566, 0.2500]])
    """
    finite = logprob.isfinite()
    n = finite.sum(dim=1)
    certainty = -logprob.masked_fill(~finite, 0).sum(dim=1) / n - n.log()
    first, second = logprob.topk(2).values.exp().unbind(1)
    return torch.stack([entropies(logprob), certainty, first - second], dim=1)


def summarise(summary: Tensor, measured: Tensor, logprob: Tensor) -> Tensor:
    """Return the summaries of answers that are one token longer, with its measures."""
    least = torch.minimum(summary[..., 3], logprob)
    return torch.cat([summary[..., :3] + measured, least[..., None]], dim=-1)

"""Samples of a model's answers, with random numbers by question, sample and step.

Random numbers are integers of torch, so their bits are the same on all devices.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from persistcal.answers.question_queue import Continuations

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

    Parameters
    ----------
    keys : Tensor of int64, shape (n, 2)
        The key of each sample's question.
    samples, steps : Tensor of int64, shape (n,)
        Numbers of the samples and of their next tokens.
    size : int
        Number of random numbers; a longer sequence extends a shorter one.

    Notes
    -----
    Each number is made of 23 bits, which float32 represents exactly. So the numbers are between
    -2.8 and 16.6; a Gumbel number exceeds 16.6 once in 17 million times.
    """
    first, second = keys[:, :1], keys[:, 1:]
    place = torch.arange(-(-size // 4), device=keys.device)
    zero = torch.zeros_like(place)
    bits = philox((place, steps[:, None], samples[:, None], zero), (first, second))
    uniform = ((torch.stack(bits, dim=2).flatten(1)[:, :size] >> 9) + 0.5) * 2.0**-23
    return uniform.log().neg().log().neg()


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
    Checkpoints share the :math:`g` of a question, so their samples differ only because of
    their probabilities.

    Parameters
    ----------
    texts : sequence of str
        The questions of a batch.
    temperature : float
        Above 0; the smaller, the more often the likeliest token.
    top_p : float
        In (0, 1]. Only the likeliest tokens are drawn: the fewest that together have at
        least this probability.
    ends : Tensor of bool, shape (vocab_size,)
        Whether a token ends its answer.

    Attributes
    ----------
    question, sample, score : Tensor of shape (n_rows,)
        State of each unfinished answer. The score is the summed log-probability of its
        tokens at temperature 1 without a nucleus. Before the first step each question has
        one row.
    summary : Tensor of shape (n_rows, 4)
        See `persistcal.answers.question_queue.Finished`; for the same distributions.
    finished_score : Tensor of shape (n_questions, n_samples)
        Scores of finished answers, by number of the sample; -inf before.
    finished_summary : Tensor of shape (n_questions, n_samples, 4)
        Summaries of finished answers; 0 before.
    finished_tokens : Tensor of shape (n_questions, n_samples, max_new_tokens)
        Tokens of all answers, padded with -1.

    References
    ----------
    .. [1] Maddison, Tarlow and Minka, "A* Sampling", NeurIPS 2014.
    """

    OF_ROWS = ("sample", "score", "summary", "token")
    OF_QUESTIONS = ("begun", "finished_score", "finished_summary", "finished_tokens", "_keys")

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
        device = ends.device
        super().__init__(len(texts), device)
        self.n_samples, self.max_new_tokens, self.ends = n_samples, max_new_tokens, ends
        self.temperature, self.top_p = temperature, top_p
        self._keys = torch.tensor([question_key(seed, text) for text in texts], device=device)
        self.sample = torch.zeros_like(self.question)
        self.score = torch.zeros(len(texts), device=device)
        self.summary = self.score.new_zeros(len(texts), N_MEASURES)
        shape = (len(texts), n_samples)
        self.finished_score = self.score.new_full(shape, -torch.inf)
        self.finished_summary = self.score.new_zeros(*shape, N_MEASURES)
        self.finished_tokens = self.question.new_full((*shape, max_new_tokens), -1)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every answer by one token, of logits of shape (n_rows, vocab_size).

        Returns the former row that each row continues.
        """
        logits = logits.float()
        logprob = logits.log_softmax(dim=1)
        measured = measure_distributions(logprob)
        chance = nucleus((logits / self.temperature).softmax(dim=1), self.top_p)
        parent = torch.arange(len(logits), device=logits.device)
        if not self.n_steps:  # here a question's samples part
            n_questions = len(parent)
            parent = parent.repeat_interleave(self.n_samples)
            self.sample = torch.arange(self.n_samples, device=parent.device).repeat(n_questions)
        self.question = self.question[parent]
        step = self.n_steps - self.begun[self.question]
        self.token = self._draw(chance, parent, step)
        chosen = logprob[parent, self.token]
        self.score = self.score[parent] + chosen
        self.summary = summarise(self.summary[parent], measured[parent], chosen)

        ended = self.ends[self.token]
        if (at_the_limit := self.ends_at(self.max_new_tokens)) is not None:
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
        noise = gumbel(
            self._keys[self.question],
            self.sample,
            step,
            BLOCK + of_blocks.shape[1],
        )
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


def entropies(logprob: Tensor) -> Tensor:
    """Return the entropy in nats of each row of log-probabilities.

    >>> entropies(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).log()).round(decimals=4)
    tensor([0.6931, -0.0000])
    """
    return -(logprob.exp() * logprob.clamp_min(torch.finfo(logprob.dtype).min)).sum(dim=1)


N_MEASURES = 4


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
    """Return the summaries of answers that are one token longer.

    Parameters
    ----------
    summary : Tensor of shape (..., 4)
        Sums of the three measures over the tokens so far, and the least log-probability.
    measured : Tensor of shape (..., 3)
        Of the distributions that the new tokens are from.
    logprob : Tensor of shape (...)
        Of the new tokens.
    """
    least = torch.minimum(summary[..., 3], logprob)
    return torch.cat([summary[..., :3] + measured, least[..., None]], dim=-1)


def nucleus(chance: Tensor, top_p: float) -> Tensor:
    """Set to 0 all but the fewest likeliest tokens that have `top_p` together.

    Notes
    -----
    Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020.

    Examples
    --------
    >>> nucleus(torch.tensor([[0.5, 0.2, 0.3]]), 0.6)
    tensor([[0.5000, 0.0000, 0.3000]])
    """
    if top_p == 1:
        return chance
    ranked, order = chance.sort(dim=1, descending=True, stable=True)
    mass_above = ranked.cumsum(dim=1) - ranked
    cut = torch.zeros_like(chance, dtype=torch.bool).scatter(1, order, mass_above >= top_p)
    return chance.masked_fill(cut, 0.0)

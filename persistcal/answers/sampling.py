"""Samples of a model's answers, whose randomness has an address: question, sample and step."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class Sampling:
    r"""Draw answers token by token, each until a token that ends it.

    At temperature :math:`T` a token has the probability softmax(logits / T), cut to the
    nucleus of `top_p`. Of the tokens :math:`i` the one with the highest
    :math:`\log p_i + g_i` is taken, with independent standard Gumbel :math:`g_i`: that is
    a draw from :math:`p` [1]_. The :math:`g` depend on the seed, the question's text, the
    number of the sample and the step alone (Philox, a counter-based generator [2]_), so
    batch sizes and shards change nothing. Rounding may, between two tokens whose sums
    are equal to about six digits. Checkpoints share the :math:`g` of a question:
    their samples differ only as far as their probabilities do.

    It is driven like `persistcal.answers.beam_search.BeamSearch`, and has the same
    attributes.

    Parameters
    ----------
    texts : sequence of str
        The questions of a batch.
    n_samples, max_new_tokens : int
    temperature : float
        Above 0; the smaller, the more often the likeliest token.
    top_p : float
        In (0, 1]. Only the likeliest tokens are drawn: the fewest that together have at
        least this probability.
    seed : int
    ends : Tensor of bool, shape (vocab_size,)
        Whether a token ends its answer.

    Attributes
    ----------
    question, sample, score, entropy : Tensor of shape (n_rows,)
        Of each answer that goes on. The score is the summed log-probability of its
        tokens, and the entropy the summed entropy of the distributions they were drawn
        from, both of the model as it is: at temperature 1, nothing cut. Before the
        first step each question has one row.
    tokens : Tensor of shape (n_rows, n_steps)
    finished_score, finished_entropy : Tensor of shape (n_questions, n_samples)
        Of the answers that have ended, by number of the sample; -inf and 0 before.
    finished_tokens : Tensor of shape (n_questions, n_samples, n_steps)
        Filled up with -1.

    References
    ----------
    .. [1] Maddison, Tarlow and Minka, "A* Sampling", NeurIPS 2014.
    .. [2] Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """

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
        self.n_samples, self.max_new_tokens, self.ends = n_samples, max_new_tokens, ends
        self.temperature, self.top_p = temperature, top_p
        self._keys = [question_key(seed, text) for text in texts]
        self.question = torch.arange(len(texts), device=device)
        self.sample = torch.zeros_like(self.question)
        self.score = torch.zeros(len(texts), device=device)
        self.entropy = torch.zeros_like(self.score)
        self.tokens = self.question.new_empty(len(texts), 0)
        shape = (len(texts), n_samples)
        self.finished_score = self.score.new_full(shape, -torch.inf)
        self.finished_entropy = self.score.new_zeros(shape)
        self.finished_tokens = self.question.new_full((*shape, max_new_tokens), -1)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every answer by one token.

        Parameters
        ----------
        logits : Tensor of shape (n_rows, vocab_size)
            Of the next token of each row.

        Returns
        -------
        Tensor of int, shape (n_rows_afterwards,)
            The former row that each row continues.
        """
        logprob = logits.float().log_softmax(dim=1)
        entropy = entropies(logprob)
        chance = nucleus((logits.float() / self.temperature).log_softmax(dim=1), self.top_p)
        parent = torch.arange(len(logits), device=logits.device)
        if not self.tokens.shape[1]:  # here a question's samples part
            n_questions = len(parent)
            parent = parent.repeat_interleave(self.n_samples)
            self.sample = torch.arange(self.n_samples, device=parent.device).repeat(n_questions)
        self.question = self.question[parent]
        token = (chance[parent] + self._gumbel(chance)).argmax(dim=1)
        self.score = self.score[parent] + logprob[parent, token]
        if not self.score.isfinite().all():
            raise FloatingPointError(
                "The model's logits are not finite, so nothing can be drawn; use another dtype."
            )
        self.entropy = self.entropy[parent] + entropy[parent]
        self.tokens = torch.cat([self.tokens[parent], token[:, None]], dim=1)

        ended = self.ends[token]
        if self.tokens.shape[1] == self.max_new_tokens:
            ended = torch.ones_like(ended)
        at = self.question[ended], self.sample[ended]
        self.finished_score[at] = self.score[ended]
        self.finished_entropy[at] = self.entropy[ended]
        self.finished_tokens[(*at, slice(self.tokens.shape[1]))] = self.tokens[ended]
        for name in ("question", "sample", "score", "entropy", "tokens"):
            setattr(self, name, getattr(self, name)[~ended])
        return parent[~ended]

    def _gumbel(self, like: Tensor) -> Tensor:
        """Return standard Gumbel noise for each row, as many as tokens."""
        step, size = self.tokens.shape[1], like.shape[1]
        noise = np.empty((len(self.question), size), np.float32)
        rows = zip(self.question.tolist(), self.sample.tolist(), strict=True)
        for row, (question, sample) in enumerate(rows):
            noise[row] = gumbel(self._keys[question], sample, step, size)
        return torch.from_numpy(noise).to(like.device)


def question_key(seed: int, text: str) -> int:
    """Return the 128-bit key of a question's random numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{text}".encode()).digest()[:16], "big")


def gumbel(key: int, sample: int, step: int, size: int) -> np.ndarray:
    """Return standard Gumbel noise for a token of a sample.

    Each (sample, step) has a counter of its own, 2**64 blocks from the next.
    """
    bits = np.random.Philox(key=key, counter=[0, step, sample, 0])
    return np.random.Generator(bits).gumbel(size=size)


def entropies(logprob: Tensor) -> Tensor:
    """Return the entropy in nats of each row of log-probabilities.

    >>> entropies(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).log()).round(decimals=4)
    tensor([0.6931, -0.0000])
    """
    return -(logprob.exp() * logprob.clamp_min(torch.finfo(logprob.dtype).min)).sum(dim=1)


def nucleus(logprob: Tensor, top_p: float) -> Tensor:
    """Set to -inf all but the fewest likeliest tokens that have `top_p` together.

    Notes
    -----
    Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020.

    Examples
    --------
    >>> nucleus(torch.tensor([[0.5, 0.2, 0.3]]).log(), 0.6).exp()
    tensor([[0.5000, 0.0000, 0.3000]])
    """
    if top_p == 1:
        return logprob
    ranked, order = logprob.sort(dim=1, descending=True, stable=True)
    before = ranked.exp().cumsum(dim=1) - ranked.exp()
    cut = torch.zeros_like(logprob, dtype=torch.bool).scatter(1, order, before >= top_p)
    return logprob.masked_fill(cut, -torch.inf)

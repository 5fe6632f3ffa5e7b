"""The bookkeeping of beam search, for a batch of questions at once."""

import torch
from torch import Tensor

from persistcal.answers.question_queue import Continuations, Finished
from persistcal.answers.sampling import N_MEASURES, measure_distributions, summarise


class BeamSearch(Continuations):
    """Beam search without length penalty, in which some tokens end a beam.

    Each step considers the best `n_candidates` continuations of a question's live beams. A
    candidate that ends is finished if it is among the best `n_beams` candidates, and lost
    otherwise. The best `n_beams` candidates that do not end stay alive. The result is the best
    `n_beams` finished beams of all steps. All candidates end at step `max_new_tokens`.

    A live beam is dropped once `n_beams` beams are finished and it is not better than the
    worst of them. Log-probabilities only decrease, so neither this beam nor lower ones can
    change the result.

    The result equals `generate` of transformers with ``length_penalty=0.0`` and
    ``early_stopping=False``. Its stopping heuristic compares the best live beam, as if
    finished at its current length, with the worst finished one. Without a length penalty this
    is an exact bound, so ``early_stopping="never"`` gives the same result; only
    ``early_stopping=True``, which stops at the `n_beams`-th finished beam, differs. Two
    differences between `generate` and textbook beam search are kept, because published
    numbers come from `generate`: ending candidates that rank after `n_beams` are lost, and
    live beams come from the best `n_candidates` only. The second one matters if many tokens
    contain a newline: if more than ``n_candidates - n_beams`` candidates end, fewer than
    `n_beams` beams stay alive, even if further continuations exist. If all end, the search
    stops.

    Parameters
    ----------
    ends : Tensor of bool, shape (vocab_size,)
        Whether a token ends its beam.

    Attributes
    ----------
    question, beam, score : Tensor of shape (n_rows,)
        Question, place and summed log-probability of each live beam, by question and then
        from the best. At first each question has one empty beam.
    summary : Tensor of shape (n_rows, 4)
        Of each live beam, see `Finished`.
    tokens : Tensor of shape (n_rows, n_steps)
        Tokens generated so far by each live beam; -1 at steps before its question's first.
    finished_score : Tensor of shape (n_questions, n_beams)
        From the best; -inf where fewer beams have finished.
    finished_summary : Tensor of shape (n_questions, n_beams, 4)
        Of the same beams.
    finished_tokens : Tensor of shape (n_questions, n_beams, n_steps)
        Filled up with -1.
    """

    OF_ROWS = ("beam", "token", "score", "summary", "tokens")
    OF_QUESTIONS = ("begun", "finished_score", "finished_summary", "finished_tokens")

    def __init__(
        self,
        n_questions: int,
        *,
        n_beams: int,
        n_candidates: int,
        max_new_tokens: int,
        ends: Tensor,
    ) -> None:
        super().__init__(n_questions, ends.device)
        self.n_beams, self.n_candidates = n_beams, n_candidates
        self.max_new_tokens, self.ends = max_new_tokens, ends
        self.beam = torch.zeros_like(self.question)
        self.score = torch.zeros(n_questions, device=ends.device)
        self.summary = self.score.new_zeros(n_questions, N_MEASURES)
        self.tokens = self.question.new_empty(n_questions, 0)
        self.finished_score = self.score.new_full((n_questions, n_beams), -torch.inf)
        self.finished_summary = self.score.new_zeros(n_questions, n_beams, N_MEASURES)
        self.finished_tokens = self.question.new_empty(n_questions, n_beams, 0)

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every live beam by one token, of logits of shape (n_rows, vocab_size).

        Returns the former row that each live beam continues.
        """
        logits = logits.float()
        token = logits.topk(min(self.n_candidates, logits.shape[1])).indices
        logprob = logits.log_softmax(dim=1)
        return self.extend(logprob.gather(1, token), token, measure_distributions(logprob))

    def extend(self, logprob: Tensor, token: Tensor, measured: Tensor | None = None) -> Tensor:
        """Continue every live beam with one of its most probable next tokens.

        Parameters
        ----------
        logprob, token : Tensor of shape (n_rows, n_likeliest)
            Log-probabilities of each live beam's likeliest next tokens, from the best,
            and these tokens: `n_candidates` of them, or all of a smaller vocabulary.
            No other token can be a candidate.
        measured : Tensor of shape (n_rows, 3), optional
            Of each live beam's next token, see `measure_distributions`. Without it only
            the margin is known.

        Returns
        -------
        Tensor of int, shape (n_rows_afterwards,)
            The former row that each live beam continues.
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
        if (at_the_limit := self.ends_at(self.max_new_tokens)) is not None:
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
        former = torch.nn.functional.pad(self.finished_tokens, (0, 1), value=-1)
        merged = torch.cat([former, tokens], dim=1)
        self.finished_score, index = torch.cat([self.finished_score, score], dim=1).topk(
            self.n_beams
        )
        self.finished_tokens = merged.take_along_dim(index[..., None], dim=1)
        merged = torch.cat([self.finished_summary, summary], dim=1)
        self.finished_summary = merged.take_along_dim(index[..., None], dim=1)

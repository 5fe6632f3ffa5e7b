"""Beams or samples of a batch of questions, which end and join one by one."""

from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import pad


class Finished(NamedTuple):
    """Answers of some questions, by question and beam or sample.

    Attributes
    ----------
    score, entropy : Tensor of shape (n_questions, n_beams)
        Summed over an answer's tokens; a score of -inf where there is no answer.
    tokens : Tensor of shape (n_questions, n_beams, n_steps)
        With -1 before and after.
    """

    score: Tensor
    entropy: Tensor
    tokens: Tensor


class Continuations:
    """State of beam search and sampling, by question and by row that goes on.

    Attributes
    ----------
    question : Tensor of int, shape (n_rows,)
        Of each row, ascending.
    token : Tensor of int, shape (n_rows,)
        The last one of each row.
    left : list of int
        How many rows each question has, where the program can see it at once.
    n_steps : int
        Number of the next step.
    begun : Tensor of int, shape (n_questions,)
        Number of each question's first step.
    finished_score, finished_entropy, finished_tokens : Tensor
        As in `Finished`.
    """

    OF_ROWS: ClassVar[tuple[str, ...]]
    OF_QUESTIONS: ClassVar[tuple[str, ...]]
    question: Tensor
    token: Tensor
    left: list[int]
    n_steps: int
    begun: Tensor
    finished_score: Tensor
    finished_entropy: Tensor
    finished_tokens: Tensor

    def __init__(self, n_questions: int, device: torch.device) -> None:
        self.question = torch.arange(n_questions, device=device)
        self.left = [1] * n_questions
        self.n_steps = 0
        self.begun = torch.zeros_like(self.question)
        self._begun = [0] * n_questions

    def advance(self, logits: Tensor) -> Tensor:
        """Continue every row by one token, and return the former row of each."""
        raise NotImplementedError

    def ends_at(self, max_new_tokens: int) -> Tensor | None:
        """Return the questions whose answers end with the step that begins; None for none."""
        first = self.n_steps + 1 - max_new_tokens
        return self.begun == first if first in self._begun else None

    def leave(self) -> Finished:
        """Drop the questions without rows, number the others anew, and return their answers."""
        n_done = self.left.count(0)
        has_rows = torch.zeros_like(self.begun).index_fill_(0, self.question, 1)
        order = has_rows.argsort(stable=True)
        done, kept = order[:n_done], order[n_done:]
        finished = Finished(
            self.finished_score[done], self.finished_entropy[done], self.finished_tokens[done]
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
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours.shape[1:] != theirs.shape[1:]:  # tokens, one column a step
                theirs = pad(theirs, (ours.shape[-1] - theirs.shape[-1], 0), value=-1)
            setattr(self, name, torch.cat([ours, theirs]))
        self._begun += [begun + later for begun in other._begun]
        self.left += other.left

"""Answers to a queue of questions: finished questions make room for new ones."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedModel

from persistcal.answers.token_trees import Layer, PrefixCache, Trees


class Finished(NamedTuple):
    """Answers of some questions, by question and beam or sample.

    The score is the summed log-probability of an answer's tokens, -inf for a missing answer.
    The last axis of `summary` has the sums of entropy, self-certainty and margin of the tokens'
    distributions, and the lowest log-probability of a token; unknown values are NaN. `tokens`,
    of shape (n_questions, n_beams, n_steps), is padded with -1.
    """

    score: Tensor
    summary: Tensor
    tokens: Tensor


class Continuations:
    """State of beam search and sampling, by question and by active row.

    Attributes
    ----------
    question : Tensor of int, shape (n_rows,)
        The question of each row, ascending.
    token : Tensor of int, shape (n_rows,)
        The last token of each row.
    left : list of int
        Number of rows of each question, without waiting for the device.
    n_steps : int
        Number of the next step.
    begun : Tensor of int, shape (n_questions,)
        Number of each question's first step.
    finished_score, finished_summary, finished_tokens : Tensor
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
    finished_summary: Tensor
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
        """Return the questions with answers that end at this step, or None."""
        first = self.n_steps + 1 - max_new_tokens
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


Answered = tuple[list[int], Finished]  # numbers of questions, and their answers


def encode_prefix(model: PreTrainedModel, tokens: list[int]) -> list[Layer]:
    """Return each layer's keys and values of `tokens`, for `PrefixCache`."""
    if not tokens:
        return []
    ids = torch.tensor(tokens, device=model.device)
    trees = Trees(1, model.device)
    trees.plant(torch.zeros_like(ids), torch.arange(len(ids), device=ids.device), [len(ids)])
    PrefixCache([], trees).forward(model, ids, rows=[0])
    return [(keys[:, 0], values[:, 0]) for keys, values in trees.layers]


def answer_queue(
    model: PreTrainedModel,
    prefix: list[Layer],
    suffixes: Sequence[list[int]],
    search: Callable[[range], Continuations],
    at_once: int,
) -> list[Answered]:
    """Answer questions, `at_once` at most together, inside `shared_prefix_attention`.

    As soon as half of the places are free, further questions are encoded and share the forward
    passes of earlier questions. The composition of batches depends only on the questions and
    the model.

    Parameters
    ----------
    prefix : list of Layer
        Of `encode_prefix`.
    suffixes : sequence of list of int
        Each question's tokens after the prefix.
    search : callable
        Returns the search for answers to a range of the questions.

    Returns
    -------
    list of (list of int, Finished)
        Numbers of questions in the order of completion, and their answers.
    """
    tokens = _Tokens(suffixes, model.device)
    batch = _Batch(model, prefix, tokens, range(min(at_once, len(suffixes))), search)
    n_begun, answered = len(batch.numbers), []
    while (n_going := batch.n_going) or n_begun < len(suffixes):
        if n_begun == len(suffixes) or 2 * n_going > at_once:
            batch.step()
            continue
        numbers = range(n_begun, min(len(suffixes), n_begun + at_once - n_going))
        further = _Batch(model, prefix, tokens, numbers, search)
        n_begun = numbers.stop
        if n_going:
            answered.append(batch.join(further))
        else:
            answered.append(batch.leave())
            batch = further
    return [*answered, batch.leave()]


class _Tokens:
    """The tokens of all questions, copied to a GPU once: beginning some waits for no copy."""

    def __init__(self, suffixes: Sequence[list[int]], device: torch.device) -> None:
        self.lengths = [len(tokens) for tokens in suffixes]
        self.ends = [0, *accumulate(self.lengths)]
        places = [
            (question, place, token)
            for question, tokens in enumerate(suffixes)
            for place, token in enumerate(tokens)
        ]
        self.places = torch.tensor(list(zip(*places, strict=True)), device=device)
        self.last = torch.tensor(self.ends[1:], device=device) - 1


class _Batch:
    """Questions that are answered together."""

    def __init__(
        self,
        model: PreTrainedModel,
        prefix: list[Layer],
        tokens: _Tokens,
        numbers: range,
        search: Callable[[range], Continuations],
    ) -> None:
        self._model = model
        self.numbers = list(numbers)
        self.trees = Trees(len(numbers), model.device)
        self.cache = PrefixCache(prefix, self.trees)
        self.search = search(numbers)
        start, end = tokens.ends[numbers.start], tokens.ends[numbers.stop]
        question, place, token = tokens.places[:, start:end]
        lengths = tokens.lengths[numbers.start : numbers.stop]
        self.trees.plant(question - numbers.start, self.cache.n_prefix + place, lengths)
        last = tokens.last[numbers.start : numbers.stop] - start
        rows = [end - 1 for end in accumulate(lengths)]
        parent = self.search.advance(self.cache.forward(model, token, rows))
        self.trees.follow(last[parent])
        self.cache.first_query += min(lengths) - 1

    @property
    def n_going(self) -> int:
        """Number of questions that are not done."""
        return sum(map(bool, self.search.left))

    def step(self) -> None:
        """Continue every answer by a token."""
        self.cache.first_query += 1
        self.trees.grow(self.search.question, self.search.left)
        self.trees.follow(
            self.search.advance(self.cache.forward(self._model, self.search.token))
        )

    def leave(self) -> Answered:
        """Drop the questions that are done."""
        left = dict(zip(self.numbers, self.search.left, strict=True))
        done = [number for number in self.numbers if not left[number]]
        self.numbers = [number for number in self.numbers if left[number]]
        return done, self.search.leave()

    def join(self, other: "_Batch") -> Answered:
        """Drop the finished questions, and add the questions of `other`."""
        most = max(self.search.left + other.search.left)
        self.trees.join(self.search.question, self.search.left, other.trees, most)
        done = self.leave()
        self.search.join(other.search)
        self.numbers += other.numbers
        self.cache.first_query = min(self.cache.first_query, other.cache.first_query)
        return done

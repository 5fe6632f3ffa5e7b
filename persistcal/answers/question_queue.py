"""Answers to a queue of questions, some at a time: where some are done, others begin."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from transformers import PreTrainedModel

from persistcal.answers.continuations import Continuations, Finished
from persistcal.answers.prefix_cache import PrefixCache
from persistcal.answers.token_trees import Layer, Trees

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
    """Answer questions, `at_once` at most together.

    As soon as half of the places are free, further questions are encoded, and go on in the
    same forward passes as those that were begun before. What is computed together follows
    from the questions and the model alone.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Inside `shared_prefix_attention`.
    prefix : list of Layer
        Of `encode_prefix`.
    suffixes : sequence of list of int
        Each question's tokens after the prefix.
    search : callable
        Returns the search for answers to a range of the questions.
    at_once : int

    Returns
    -------
    list of (list of int, Finished)
        Questions by number, in the order in which they were done, and their answers.
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
        """Drop the questions that are done, and take in those of `other`."""
        most = max(self.search.left + other.search.left)
        self.trees.join(self.search.question, self.search.left, other.trees, most)
        done = self.leave()
        self.search.join(other.search)
        self.numbers += other.numbers
        self.cache.first_query = min(self.cache.first_query, other.cache.first_query)
        return done

"""Answers to a queue of questions: some are answered together, others follow them.

On one GPU a step computes all rows of all slots, and rows without an answer are ignored. So
shapes and addresses are fixed, steps are CUDA graphs, and the host looks at the answers every
few steps. On a CPU, or several GPUs, a step computes only the rows with an answer.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from transformers import PreTrainedModel

from persistcal.answers.continuations import Continuations, Finished
from persistcal.answers.slots import Rows, SharedPrefix, Slots
from persistcal.models.graphs import Graphs

STEPS = 8  # free steps of a tree after it is made or pruned, without graphs
LOOK = 4  # steps from one look at the answers to the next, with graphs
BUCKET = 64  # a graph reads a multiple of these places of each tree

Answered = tuple[list[int], Finished]  # numbers of questions, and their answers


def answer_queue(
    model: PreTrainedModel,
    shared: SharedPrefix,
    suffixes: Sequence[list[int]],
    search: Callable[[range], Continuations],
    at_once: int,
) -> list[Answered]:
    """Answer questions, `at_once` at most together, inside `slot_attention`.

    As soon as half of the slots are free, further questions are encoded and share the forward
    passes of earlier questions. The composition of batches depends only on the questions and
    the model. `search` returns the search for answers to a range of the questions.
    """
    batch, shared.batch = shared.batch, None  # a batch that fails is not used again
    if batch is None or batch.at_most < at_once:
        batch = RunningBatch(model, shared, search, at_once)
    # Copied to a GPU once: beginning some waits for no copy.
    ids = torch.tensor([token for tokens in suffixes for token in tokens], device=model.device)
    tokens = ids.split([len(tokens) for tokens in suffixes])
    answered, n_begun = [], 0
    while n_begun < len(suffixes) or batch.n_going:
        n_free = at_once - batch.n_going
        if n_begun < len(suffixes) and 2 * n_free >= at_once:
            numbers = range(n_begun, min(len(suffixes), n_begun + n_free))
            n_begun = numbers.stop
            further = batch.begin(tokens[numbers.start : n_begun], numbers, search(numbers))
            answered.append(batch.rearrange(further))
        elif batch.has_too_many_slots:
            answered.append(batch.rearrange())
        else:
            answered += batch.step_on()
    answered.append(batch.rearrange())
    if batch.graphs.in_use:
        shared.batch = batch
    return [(numbers, finished) for numbers, finished in answered if numbers]


class NewQuestions(NamedTuple):
    """Questions that begin together, with their number of growing answers."""

    numbers: list[int]
    search: Continuations
    slots: Slots
    left: list[int]


class RunningBatch:
    """Questions that are answered together, at most `at_most`."""

    def __init__(
        self,
        model: PreTrainedModel,
        shared: SharedPrefix,
        search: Callable[[range], Continuations],
        at_most: int,
    ) -> None:
        self._model, self._shared, self.at_most = model, shared, at_most
        self.graphs = Graphs(model)
        self.search, nothing = search(range(0)), search(range(0))
        self.slots, no_slots = (Slots(shared.layers, [], model.device) for _ in range(2))
        for slots in (self.slots, no_slots):
            slots.settle(nothing.n_answers)
        self._nothing = NewQuestions([], nothing, no_slots, [])
        self._numbers: list[int] = []
        self._left: list[int] = []  # growing answers of each slot, at the last look
        self._all_rows: dict[int, Rows] = {}

    @property
    def n_going(self) -> int:
        """Number of questions that are not done."""
        return sum(map(bool, self._left))

    def begin(
        self, tokens: tuple[torch.Tensor, ...], numbers: range, search: Continuations
    ) -> NewQuestions:
        """Encode questions and begin their answers."""
        lengths = [len(ids) for ids in tokens]
        slots = Slots(self._shared.layers, lengths, self._model.device)
        last = [end - 1 for end in accumulate(lengths)]
        position = slots.n_prefix + slots.rows.number
        search.advance(slots.forward(self._model, torch.cat(tokens), position, kept=last))
        slots.settle(search.n_answers)
        return NewQuestions(list(numbers), search, slots, search.count_growing())

    def rearrange(self, further: NewQuestions | None = None) -> Answered:
        """Drop and return the questions that are done, and add others."""
        further = further or self._nothing
        kept = [slot for slot, n in enumerate(self._left) if n]
        done = [slot for slot in range(len(self._numbers)) if not self._left[slot]]
        answered = [self._numbers[slot] for slot in done], self.search.finished(done)
        self._numbers = [self._numbers[slot] for slot in kept] + further.numbers
        self._left = [self._left[slot] for slot in kept] + further.left
        n_slots, n_rows = self._n_slots(len(self._left)), self.search.n_answers
        room = STEPS * max(self._left, default=0), 0
        if self.graphs.in_use:
            room = LOOK * n_rows, _in_buckets(self._shared.n_places)
            if n_slots not in self._all_rows:
                row = torch.arange(n_slots * n_rows, device=self._model.device)
                rows = Rows.grouped(row // n_rows, row % n_rows, n_slots, n_rows)
                self._all_rows[n_slots] = rows
        grows = self.search.is_growing
        kept_there = torch.tensor(kept, dtype=torch.long, device=self._model.device)
        self.slots.rearrange(kept_there, grows, further.slots, n_slots, room)
        self.search.rearrange(kept_there, further.search, n_slots)
        self._left += [0] * (n_slots - len(self._left))
        return answered

    def _n_slots(self, n: int) -> int:
        """Return the number of slots for n questions; with graphs, one of few numbers."""
        return min(self.at_most, 1 << max(0, n - 1).bit_length()) if self.graphs.in_use else n

    @property
    def has_too_many_slots(self) -> bool:
        """Whether half of the slots are enough."""
        return 2 * self._n_slots(self.n_going) <= len(self._left)

    def step_on(self) -> list[Answered]:
        """Continue every answer, by a token or, with graphs, by `LOOK` tokens."""
        answered = []
        for _ in range(LOOK if self.graphs.in_use else 1):
            most = self.search.n_answers if self.graphs.in_use else max(self._left)
            if self.slots.n_used + most > self.slots.capacity:
                answered.append(self.rearrange())
            self.slots.n_read = self.slots.n_used + most
            if not self.graphs.in_use:
                self.step()
            else:
                self.slots.n_read = min(_in_buckets(self.slots.n_read), self.slots.capacity)
                size = len(self._left), self.slots.capacity, self.slots.n_read
                addresses = self.slots.storage.n_moved, self.search.storage.n_moved
                if not self.graphs.run(size, addresses, self.step):
                    break
            self.slots.n_used += most
        self._left = self.search.count_growing()
        return answered

    def step(self) -> None:
        """Continue every answer by a token."""
        if self.graphs.in_use:
            growing, self.slots.rows = None, self._all_rows[len(self._left)]
            token = self.search.token.flatten()
        else:
            grows, n_rows = self.search.is_growing.flatten(), self.search.n_answers
            growing = grows.nonzero_static(size=sum(self._left))[:, 0]
            slot, number = growing // n_rows, growing % n_rows
            self.slots.rows = Rows.grouped(slot, number, len(self._left), max(self._left))
            token = self.search.token.flatten()[growing]
        position = self.slots.position[self.slots.rows.slot]
        logits = self.slots.forward(self._model, token, position)
        self.slots.follow(self.search.advance(logits, growing))


def _in_buckets(n: int) -> int:
    return -(-n // BUCKET) * BUCKET

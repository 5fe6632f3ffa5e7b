"""Answers to a queue of questions, each with its tokens in a tree that its answers share.

The beams of a question share its tokens and their common generated tokens. So a question has
one tree, each step appends one token per beam, and keys and values are never copied. All beams
of a question attend to its whole tree in one matrix product, and a mask hides tokens outside a
beam's path.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import AttentionInterface, Cache, PreTrainedModel

from persistcal.answers.continuations import Continuations, Finished

STEPS = 8  # free steps of a tree after it is made or pruned

Layer = tuple[Tensor, Tensor]


class Trees:
    """Trees of tokens, one per question of a search, which grow step by step."""

    def __init__(self, n_questions: int, device: torch.device) -> None:
        # Keys and values, each of shape (n_kv_heads, n_trees, capacity, head_dim). The first
        # `width` places of each tree are in use.
        self.layers: list[Layer] = []
        self.questions = torch.arange(n_questions, device=device)  # of each tree, ascending
        self.positions = torch.zeros(n_questions, 0, dtype=torch.long, device=device)
        self.width = self.capacity = 0
        self.seen: Tensor  # bool, shape (n_rows, width): the places on each row's path
        self.position: Tensor
        self._of_forward: dict[tuple[object, ...], Tensor] = {}
        self._numbers = self.questions

    def _numbers_to(self, n: int) -> Tensor:
        """Return 0 to n - 1, made once rather than at each step."""
        if n > len(self._numbers):
            self._numbers = torch.arange(2 * n, device=self.questions.device)
        return self._numbers[:n]

    def plant(self, question: Tensor, position: Tensor, lengths: Sequence[int]) -> None:
        """Make the rows of the next forward all tokens of the questions, in order."""
        self.capacity = max(lengths)
        self.positions = self.positions.new_zeros(len(lengths), self.capacity)
        self.seen = torch.zeros(len(question), 0, dtype=torch.bool, device=question.device)
        self._append(question, position, max(lengths))
        self.seen = self._numbers_to(self.width) <= self.rank[:, None]

    def follow(self, parent: Tensor) -> None:
        """Set the rows that continue the given rows of the last forward pass."""
        self.seen, self.position = self.seen[parent], self.position[parent]

    def grow(self, question: Tensor, left: Sequence[int]) -> None:
        """Make the rows of the next forward the children of the rows, `left` per question."""
        n_alive, most = sum(map(bool, left)), max(left)
        if self.width + most > self.capacity or 2 * n_alive <= len(self.questions):
            self._prune(question, n_alive, STEPS * most)
        self._append(question, self.position + 1, most)
        is_own = self.column[:, None] == self._numbers_to(self.width)
        self.seen = pad(self.seen, (0, most)) | is_own

    def join(self, question: Tensor, left: Sequence[int], other: "Trees", most: int) -> None:
        """Drop the trees of questions without rows, and add the trees of `other`.

        All trees are renumbered, with the trees and rows of `other` last. At most `most` rows
        of a question will grow.
        """
        n_alive = sum(map(bool, left))
        self._prune(question, n_alive, STEPS * most, other)
        self.questions = self._numbers_to(n_alive + len(other.questions))
        seen = (
            pad(trees.seen, (0, self.width - trees.seen.shape[1])) for trees in (self, other)
        )
        self.seen = torch.cat(list(seen))
        self.position = torch.cat([self.position, other.position])

    def _append(self, question: Tensor, position: Tensor, most: int) -> None:
        """Give each row the next free place of the tree, `most` places for each tree."""
        row = self._numbers_to(len(question))
        self.tree = torch.searchsorted(self.questions, question)
        self.rank = row - torch.searchsorted(question, question)
        self.column = self.width + self.rank
        self.position = position
        self.positions[self.tree, self.column] = position
        self.width += most
        # The row at each place of the grid of trees and ranks; where a tree has fewer rows,
        # that of another, whose result nobody reads.
        first = torch.searchsorted(question, self.questions)
        self.grid = (first[:, None] + self._numbers_to(most)).clamp(max=len(question) - 1)
        self._of_forward.clear()

    def _prune(
        self, question: Tensor, n_alive: int, room: int, other: "Trees | None" = None
    ) -> None:
        """Keep the trees of questions with rows, the visible places of these, and `other`."""
        row = self._numbers_to(len(question))
        is_first = torch.searchsorted(question, question) == row
        alive = question[is_first.nonzero_static(size=n_alive)[:, 0]]
        former = torch.searchsorted(self.questions, alive)
        tree = torch.searchsorted(alive, question)
        seen = torch.zeros(n_alive, self.width, device=alive.device)
        used = seen.index_add_(0, tree, self.seen.float()) > 0
        n_kept = int(used.sum(dim=1).max())
        order = used.logical_not().byte().argsort(dim=1, stable=True)[:, :n_kept]
        n_new, new_width = (len(other.questions), other.width) if other else (0, 0)
        self.width = max(n_kept, new_width)
        self.capacity = self.width + room

        def kept(full: Tensor, new: Tensor | None) -> Tensor:
            places = former.to(full.device)[:, None], order.to(full.device)
            part = full[:, *places]
            shape = len(part), n_alive + n_new, self.capacity, part.shape[-1]
            pruned = full.new_zeros(shape)
            pruned[:, :n_alive, :n_kept] = part
            if new is not None:
                pruned[:, n_alive:, :new_width] = new[:, :, :new_width]
            return pruned

        for layer, (keys, values) in enumerate(self.layers):  # no two copies of all layers
            new = other.layers[layer] if other else (None, None)
            self.layers[layer] = kept(keys, new[0]), kept(values, new[1])
        new_positions = other.positions[None, ..., None] if other else None
        self.positions = kept(self.positions[None, ..., None], new_positions)[0, ..., 0]
        self.seen = self.seen.gather(1, order[tree])
        self.questions = alive

    def store(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Write the rows' keys and values, of shape (n_kv_heads, n_rows, head_dim)."""
        n_kv, _, head_dim = keys.shape
        if layer == len(self.layers):
            # Zeros, because hidden values are multiplied by a weight of 0.
            shape = (n_kv, len(self.questions), self.capacity, head_dim)
            self.layers.append((keys.new_zeros(shape), values.new_zeros(shape)))
        tree, column = self.tree.to(keys.device), self.column.to(keys.device)
        for stored, new in zip(self.layers[layer], (keys, values), strict=True):
            stored[:, tree, column] = new

    def bias(self, like: Tensor, first: int, n_prefix: int, window: int | None) -> Tensor:
        """Return the mask of the grid's scores for the tree and the prefix: 0 or -inf.

        The shape is (n_trees, n_ranks, 1, width + n_prefix - first).
        """
        key = "bias", first, window, like.device
        if key not in self._of_forward:
            seen = self.seen
            if window is None:
                seen = pad(seen, (0, n_prefix - first), value=True)
            else:
                position = self.position[:, None]
                seen = seen & (position - self.positions[self.tree, : self.width] < window)
                if first < n_prefix:
                    shown = position - self._numbers_to(n_prefix)[first:] < window
                    seen = torch.cat([seen, shown], dim=1)
            bias = seen[self.grid].to(like.device, like.dtype).log_()  # log 1 = 0, log 0 = -inf
            self._of_forward[key] = bias[:, :, None]
        return self._of_forward[key]

    def places(self, n_kv: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return where the grid's entries are among the rows' heads, and these in the grid."""
        key = "places", n_kv, device
        if (*key, 0) not in self._of_forward:
            n_trees, n_ranks = self.grid.shape
            head = self._numbers_to(n_kv)
            places = self.grid * n_kv + head[:, None, None]
            back = (head * n_trees + self.tree[:, None]) * n_ranks + self.rank[:, None]
            self._of_forward[*key, 0] = places.flatten().to(device)
            self._of_forward[*key, 1] = back.flatten().to(device)
        return self._of_forward[*key, 0], self._of_forward[*key, 1]

    def attend(self, query: Tensor, layer: int, prefix: Layer | None, bias: Tensor) -> Tensor:
        """Return the rows' attention, of the shape of `query`: (n_rows, n_heads, head_dim)."""
        keys, values = (part[:, :, : self.width].flatten(0, 1) for part in self.layers[layer])
        n_rows, n_heads, head_dim = query.shape
        n_trees, n_ranks = self.grid.shape
        n_kv = len(keys) // n_trees
        places, back = self.places(n_kv, query.device)
        # Heads that share keys: (n_kv, n_trees, n_ranks * group, head_dim).
        query = query.reshape(n_rows * n_kv, -1)[places]
        scores = query.view(len(keys), -1, head_dim) @ keys.transpose(1, 2)
        if prefix is not None:
            of_prefix = query.view(n_kv, -1, head_dim) @ prefix[0].transpose(1, 2)
            scores = torch.cat([scores, of_prefix.view(*scores.shape[:2], -1)], dim=2)
        grid = scores.view(n_kv, n_trees, n_ranks, n_heads // n_kv, -1)
        weight = grid.add_(bias).softmax(dim=-1, dtype=torch.float32)
        weight = weight.to(values.dtype).view(scores.shape)
        out = weight[:, :, : self.width] @ values
        if prefix is not None:
            of_prefix = weight.view(n_kv, -1, weight.shape[2])[:, :, self.width :]
            out.view(n_kv, -1, head_dim).baddbmm_(of_prefix, prefix[1])
        return out.view(-1, n_heads // n_kv * head_dim)[back].view(n_rows, n_heads, head_dim)


class PrefixCache(Cache):
    """The keys and values of a shared prefix, and the trees of the questions after it.

    `prefix` has keys and values of shape (n_kv_heads, n_prefix, head_dim) for each layer; it is
    empty if nothing is shared.
    """

    def __init__(self, prefix: list[Layer], trees: Trees) -> None:
        super().__init__(layers=[])
        self.prefix, self.trees = prefix, trees
        self.n_prefix = prefix[0][0].shape[1] if prefix else 0
        # No row's position is before it; asking their tensor would wait for a GPU.
        self.first_query = self.n_prefix

    def forward(
        self, model: PreTrainedModel, tokens: Tensor, rows: list[int] | None = None
    ) -> Tensor:
        """Run `model` on the next token of each row of the trees, and return its logits.

        They are those of all rows or of `rows`, which is not a tensor, because accelerate would
        move a tensor to the first GPU, and the last layer is on the last one.
        """
        output = model(
            input_ids=tokens[None],
            position_ids=self.trees.position[None],
            past_key_values=self,
            prefix_cache=self,
            use_cache=True,
            logits_to_keep=0 if rows is None else rows,
        )
        return output.logits[0].to(tokens.device)

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: object,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Remember keys and values of shape (1, n_kv_heads, n_rows, head_dim)."""
        self.trees.store(layer_idx, key_states[0], value_states[0])
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens that a row can have before it."""
        return self.n_prefix + self.trees.width


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    prefix_cache: PrefixCache,
    sliding_window: int | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """Return attention of shape (1, n_rows, n_heads, head_dim) over prefix and trees."""
    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:
        raise NotImplementedError(
            f"{type(module).__name__} needs logit soft-capping or attention sinks, which "
            "prefix-shared decoding does not have; use a model without them."
        )
    layer, trees = cast(int, module.layer_idx), prefix_cache.trees
    first, n_prefix = 0, prefix_cache.n_prefix  # the first token of the prefix that a row sees
    if sliding_window is not None:
        first = min(max(0, prefix_cache.first_query - sliding_window + 1), n_prefix)
    prefix = None
    if first < n_prefix:
        keys, values = prefix_cache.prefix[layer]
        prefix = keys[:, first:], values[:, first:]
    bias = trees.bias(query, first, n_prefix, sliding_window)
    return trees.attend(query[0].transpose(0, 1) * scaling, layer, prefix, bias)[None], None


@contextmanager
def shared_prefix_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let `model` attend through a `PrefixCache`, and restore it afterwards."""
    original = model.config._attn_implementation
    AttentionInterface.register("shared_prefix", _attend)
    model.set_attn_implementation("shared_prefix")
    if model.config._attn_implementation != "shared_prefix":
        raise ValueError(
            f"{type(model).__name__} does not support transformers' attention interface, "
            "which prefix-shared decoding needs; use a model class that does."
        )
    try:
        yield
    finally:
        model.set_attn_implementation(original)


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
    the model. `search` returns the search for answers to a range of the questions.
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

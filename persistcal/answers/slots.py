"""Trees of tokens in slots, one for each question, and attention to them.

The beams of a question share its tokens and their common generated tokens. So a question has
one tree, each step appends one token per beam, and keys and values are never copied. All beams
of a question attend to its whole tree in one matrix product, and a mask hides tokens outside a
beam's path.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import AttentionInterface, Cache, PreTrainedModel

from persistcal.answers.continuations import Storage
from persistcal.models.graphs import fused_norms

Layer = tuple[Tensor, Tensor]


class Rows(NamedTuple):
    """The rows of a forward pass, ordered by slot."""

    slot: Tensor
    number: Tensor  # in the slot
    rank: Tensor  # among the rows of the slot in this pass
    grid: Tensor  # the row of each slot and rank; if there is none, another one

    @classmethod
    def grouped(cls, slot: Tensor, number: Tensor, n_slots: int, most: int) -> "Rows":
        """Return rows, at most `most` in a slot."""
        place = torch.arange(max(len(slot), n_slots, most), device=slot.device)
        first = torch.searchsorted(slot, place[:n_slots])
        grid = (first[:, None] + place[:most]).clamp(max=len(slot) - 1)
        return cls(slot, number, place[: len(slot)] - first[slot], grid)


class Slots(Cache):
    """Keys and values of a prefix that all questions share, and of a tree for each question.

    `prefix` has keys and values of shape (n_kv_heads, n_prefix, head_dim) for each layer; it is
    empty if nothing is shared. A tree is made for the tokens of each question, which have the
    given `lengths`.
    """

    def __init__(
        self, prefix: list[Layer], lengths: Sequence[int], device: torch.device
    ) -> None:
        super().__init__(layers=[])
        self.prefix = prefix
        self.n_prefix = prefix[0][0].shape[1] if prefix else 0
        self.capacity = self.n_read = max(lengths, default=0)
        self.n_used = 0  # places of each tree, and the same on the device
        self.width = torch.zeros((), dtype=torch.long, device=device)
        # Keys and values, each of shape (n_kv_heads, n_slots, capacity, head_dim)
        self.trees: list[Layer] = []
        self.lengths = torch.tensor(lengths, dtype=torch.long, device=device)
        self.position = self.n_prefix + self.lengths  # of the next token of each slot
        shape = 1, len(lengths), self.capacity, 1
        self.positions = self.lengths.new_zeros(shape)  # of each place
        place = torch.arange(self.capacity, device=device)
        # Whether a place is on the path of a row, of shape (n_rows, n_slots, capacity, 1)
        path = (place <= place[:, None])[:, None, :, None]
        self.seen = path.expand(-1, len(lengths), -1, -1).contiguous()
        slot = torch.arange(len(lengths), device=device).repeat_interleave(
            self.lengths, output_size=sum(lengths)
        )
        number = torch.arange(len(slot), device=device) - torch.searchsorted(slot, slot)
        self.rows = Rows.grouped(slot, number, len(lengths), self.capacity)
        self.storage = Storage()
        self._of_pass: dict[tuple[object, ...], Any] = {}

    def forward(
        self,
        model: PreTrainedModel,
        tokens: Tensor,
        position: Tensor,
        kept: list[int] | None = None,
    ) -> Tensor:
        """Run `model` on the next token of each of `rows`, and return its logits.

        Logits are returned for all rows or for the `kept` ones. These are a list, because
        accelerate would move a tensor to the first GPU, and the last layer is on the last one.
        """
        n_slots, most = self.rows.grid.shape
        slot, number, rank, _ = self.rows
        place = self.width + rank
        self._of_pass.clear()
        self._at, self._position = slot * self.capacity + place, position
        self.positions.view(-1).index_copy_(0, self._at, position)
        rows = (number * n_slots + slot) * self.capacity + place
        self.seen.view(-1).index_fill_(0, rows, True)
        output = model(
            input_ids=tokens[None],
            position_ids=position[None],
            past_key_values=self,
            slots=self,
            use_cache=True,
            logits_to_keep=0 if kept is None else kept,
        )
        self.width += most
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
        if layer_idx == len(self.trees):
            n_slots = len(self.position)
            keys, values = (
                # Zeros, because hidden values are multiplied by a weight of 0.
                new.new_zeros(new.shape[1], n_slots, self.capacity, new.shape[3])
                for new in (key_states, value_states)
            )
            self.trees.append((keys, values))
        places = self._at.to(key_states.device)
        for stored, new in zip(self.trees[layer_idx], (key_states, value_states), strict=True):
            stored.flatten(1, 2).index_copy_(1, places, new[0])
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens that a row can have before it."""
        return self.n_prefix + self.n_read

    def settle(self, n_rows: int) -> None:
        """Give each slot `n_rows` rows that continue its question."""
        place = torch.arange(self.capacity, device=self.lengths.device)
        path = (place < self.lengths[:, None])[None, ..., None]
        self.seen = path.expand(n_rows, -1, -1, -1)
        self.n_used = self.capacity

    def follow(self, parent: Tensor | None) -> None:
        """Let each row continue the given row of the same slot, or itself."""
        if parent is not None:
            index = parent.T[..., None, None].expand_as(self.seen)
            self.seen.copy_(self.seen.gather(0, index))
        self.position += 1

    def rearrange(
        self, kept: Tensor, grows: Tensor, further: "Slots", n_slots: int, room: tuple[int, int]
    ) -> None:
        """Keep the visible places of some slots; add the slots `further`, and empty ones.

        `grows` is whether each row, by slot, has an answer. `room` is the number of places that
        each tree then has free, and the least that it has.
        """
        seen = self.seen[:, kept] & grows[kept].T[..., None, None]
        is_used = seen.any(dim=0)[..., 0]
        width = int(is_used.sum(dim=1).max()) if len(kept) else 0
        order = is_used.logical_not().byte().argsort(dim=1, stable=True)[:, :width]
        self.n_used = max(width, further.n_used)
        self.capacity = max(self.n_used + room[0], room[1])
        self.width.fill_(self.n_used)

        def changed(name: object, former: Tensor, new: Tensor | None) -> Tensor:
            part = former[:, kept.to(former.device)[:, None], order.to(former.device)]
            shape = len(former), n_slots, self.capacity, former.shape[3]
            result = self.storage.shaped(name, shape, former)
            if name == "seen":
                result.zero_()
            result[:, : len(kept), :width] = part
            if new is not None:
                begun = result[:, len(kept) : len(kept) + new.shape[1], : further.n_used]
                begun.copy_(new[:, :, : further.n_used])
            return result

        if not self.trees:
            self.trees = [(keys[:, :0], values[:, :0]) for keys, values in further.trees]
        for layer, (keys, values) in enumerate(self.trees):  # no two copies of all layers
            new = further.trees[layer] if further.trees else (None, None)
            self.trees[layer] = (
                changed((layer, "keys"), keys, new[0]),
                changed((layer, "values"), values, new[1]),
            )
        self.positions = changed("positions", self.positions, further.positions)
        self.seen = changed("seen", self.seen, further.seen)
        position = self.position[kept]
        self.position = self.storage.shaped("position", (n_slots,), position)
        self.position[: len(kept)] = position
        self.position[len(kept) : len(kept) + len(further.position)] = further.position

    def attend(
        self, query: Tensor, layer: int, *, scaling: float, window: int | None
    ) -> Tensor:
        """Return the attention of queries of shape (n_heads, n_rows, head_dim).

        The result's shape is (n_rows, n_heads, head_dim).
        """
        keys, values = (part[:, :, : self.n_read].flatten(0, 1) for part in self.trees[layer])
        n_heads, n_rows, head_dim = query.shape
        n_slots, most = self.rows.grid.shape
        n_kv = len(keys) // n_slots
        into_grid, out_of_grid = self._places(n_heads, n_kv, query.device)
        # Heads that share keys: (n_kv, n_slots, most * group, head_dim).
        if n_rows < n_slots * most or n_heads > n_kv:  # else the rows are the grid
            query = query.reshape(-1, head_dim).index_select(0, into_grid)
        product = partial(torch.baddbmm, query.new_empty(()), beta=0, alpha=scaling)
        first = self._first_seen(window)  # of the prefix
        query = query.reshape(len(keys), -1, head_dim)
        scores = product(query, keys.transpose(1, 2))
        if first < self.n_prefix:
            prefix_keys, prefix_values = (part[:, first:] for part in self.prefix[layer])
            of_prefix = product(query.view(n_kv, -1, head_dim), prefix_keys.transpose(1, 2))
            scores = torch.cat([scores, of_prefix.view(*scores.shape[:2], -1)], dim=2)
        grid = scores.view(n_kv, n_slots, most, n_heads // n_kv, -1)
        bias = self._bias(window, query)
        weight = grid.add_(bias).softmax(dim=-1, dtype=torch.float32)
        weight = weight.to(values.dtype).view(scores.shape)
        out = weight[:, :, : self.n_read] @ values
        if first < self.n_prefix:
            of_prefix = weight.view(n_kv, -1, weight.shape[2])[:, :, self.n_read :]
            out.view(n_kv, -1, out.shape[2]).baddbmm_(of_prefix, prefix_values)
        out = out.view(-1, out.shape[2]).index_select(0, out_of_grid)
        return out.view(n_rows, n_heads, -1)

    def _first_seen(self, window: int | None) -> int:
        """Return the first token of the prefix that a row can see."""
        return 0 if window is None else min(max(0, self.n_prefix - window + 1), self.n_prefix)

    def _bias(self, window: int | None, like: Tensor) -> Tensor:
        """Return the mask of scores for trees and prefix: 0 or -inf.

        The shape is (n_slots, most, 1, n_read + number of the prefix's tokens).
        """
        key = "bias", window, like.device
        if key not in self._of_pass:
            slot, number, _, grid = self.rows
            seen = self.seen[:, :, : self.n_read, 0][number[grid], slot[grid]]
            first = self._first_seen(window)
            if window is None:
                seen = pad(seen, (0, self.n_prefix), value=True)
            else:
                position = self._position[grid][..., None]
                seen = seen & (position - self.positions[0, :, None, : self.n_read, 0] < window)
                if first < self.n_prefix:
                    place = torch.arange(first, self.n_prefix, device=grid.device)
                    seen = torch.cat([seen, position - place < window], dim=2)
            bias = seen.to(like.device, like.dtype).log_()  # log 1 = 0, log 0 = -inf
            self._of_pass[key] = bias[:, :, None]
        return self._of_pass[key]

    def _places(self, n_heads: int, n_kv: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return where the grid's entries are among the rows' heads, and these in the grid."""
        key = "places", n_heads, n_kv, device
        if key not in self._of_pass:
            slot, _, rank, grid = self.rows
            head = torch.arange(n_heads, device=grid.device).view(n_kv, -1)
            group = head.shape[1]
            into = head[:, None, None] * len(slot) + grid[..., None]
            row = slot * grid.shape[1] + rank
            out = (head // group * grid.numel() + row[:, None, None]) * group + head % group
            self._of_pass[key] = into.flatten().to(device), out.flatten().to(device)
        return self._of_pass[key]


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    slots: Slots,
    sliding_window: int | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """Return attention of shape (1, n_rows, n_heads, head_dim) over prefix and trees."""
    layer = cast(int, module.layer_idx)
    out = slots.attend(query[0], layer, scaling=scaling, window=sliding_window)
    return out[None], None


def check_model(model: PreTrainedModel) -> None:
    """Refuse a model that does not fit `Slots`; it needs no weights."""
    config = model.config
    problems = {
        "caps the logits of its attention": getattr(config, "attn_logit_softcapping", None),
        "has attention sinks": any(hasattr(module, "sinks") for module in model.modules()),
        "keeps a state instead of keys and values": model._is_stateful,
        "keeps compressed keys and values": getattr(config, "kv_lora_rank", None),
        "is the decoder of an encoder-decoder": type(config)().is_encoder_decoder,
        "does not support transformers' attention interface": (
            not type(model)._can_set_attn_implementation()
        ),
    }
    for problem in filter(problems.get, problems):
        raise ValueError(
            f"{type(model).__name__} {problem}, so its questions cannot share a prefix; set "
            "decoding.backend to vllm, or use another model."
        )


@contextmanager
def slot_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let `model` attend through `Slots`, with fused norms, and restore it afterwards."""
    check_model(model)
    original = model.config._attn_implementation
    AttentionInterface.register("slots", _attend)
    model.set_attn_implementation("slots")
    try:
        with fused_norms(model):
            yield
    finally:
        model.set_attn_implementation(original)


class SharedPrefix:
    """A prefix: keys and values in `layers`, and the `batch` that last followed it.

    `n_places` is how many places a tree after it is expected to need.
    """

    def __init__(self, model: PreTrainedModel, tokens: list[int], n_places: int = 0) -> None:
        self.layers: list[Layer] = []
        self.n_places = n_places
        self.batch: Any = None
        if tokens:
            slots = Slots([], [len(tokens)], model.device)
            ids = torch.tensor(tokens, device=model.device)
            slots.forward(model, ids, slots.rows.number, kept=[0])
            self.layers = [(keys[:, 0], values[:, 0]) for keys, values in slots.trees]

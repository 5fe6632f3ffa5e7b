"""Attention over a shared prefix and a tree of tokens for each question.

The few-shot examples are the same for every question and beam: their keys and values are
kept once, beside those of the questions' trees (`persistcal.answers.token_trees`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor
from transformers import AttentionInterface, Cache, PreTrainedModel

from persistcal.answers.token_trees import Layer, Trees


class PrefixCache(Cache):
    """The keys and values of a shared prefix, and the trees of those who follow it.

    Attributes
    ----------
    prefix : list of (Tensor, Tensor)
        For each layer the keys and values of the prefix, each of shape
        (n_kv_heads, n_prefix, head_dim). Empty when nothing is shared.
    first_query : int
        No row's position is before it; asking their tensor would wait for a GPU.
    """

    def __init__(self, prefix: list[Layer], trees: Trees) -> None:
        super().__init__(layers=[])
        self.prefix, self.trees = prefix, trees
        self.first_query = self.n_prefix

    @property
    def n_prefix(self) -> int:
        """Number of tokens in the shared prefix."""
        return self.prefix[0][0].shape[1] if self.prefix else 0

    def forward(
        self, model: PreTrainedModel, tokens: Tensor, rows: list[int] | None = None
    ) -> Tensor:
        """Run `model` on the next token of each row of the trees, and remember them.

        Inside `shared_prefix_attention`, it returns logits of shape (n_rows, vocab_size), or
        those of the given `rows` only. These are no tensor: accelerate would move it to the
        first GPU of several, and the last layer, whose rows are meant, is on the last one.
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

    def first_visible(self, sliding_window: int | None) -> int:
        """Return the first prefix token that some row sees."""
        if sliding_window is None:
            return 0
        return min(max(0, self.first_query - sliding_window + 1), self.n_prefix)


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
    layer = cast(int, module.layer_idx)
    first, n_prefix = prefix_cache.first_visible(sliding_window), prefix_cache.n_prefix
    prefix = None
    if first < n_prefix:
        keys, values = prefix_cache.prefix[layer]
        prefix = keys[:, first:], values[:, first:]
    trees = prefix_cache.trees
    bias = trees.bias(query, first, n_prefix, sliding_window)
    return trees.attend(query[0].transpose(0, 1) * scaling, layer, prefix, bias)[None], None


@contextmanager
def shared_prefix_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let `model` attend through a `PrefixCache`, and restore it afterwards."""
    before = model.config._attn_implementation
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
        model.set_attn_implementation(before)

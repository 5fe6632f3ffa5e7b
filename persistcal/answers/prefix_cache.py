"""Attention over a prefix that all rows of a batch share, stored and read once.

The few-shot examples are the same for every question and beam. Their keys and values
are kept once, and all rows attend to them in one matrix product per head; only a row's
own tokens (its question and what it has generated) are stored per row. Both parts are
joined by the usual running softmax, so the result is ordinary attention.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor
from transformers import AttentionInterface, Cache, PreTrainedModel

NOWHERE = 2**40  # position of padding: after every query, so causally hidden from all


class PrefixCache(Cache):
    """Keys and values of a shared prefix and of the rows' own tokens.

    Attributes
    ----------
    prefix : list of (Tensor, Tensor)
        For each layer the keys and values of the prefix, each of shape
        (n_kv_heads, n_prefix, head_dim). Empty when nothing is shared.
    own : list of (Tensor, Tensor)
        For each layer the keys and values of the rows' own tokens, each of shape
        (n_kv_heads, n_rows, n_own, head_dim).
    positions : Tensor of shape (n_rows, n_own)
        Position of each own token in its row's whole text.
    """

    def __init__(self, prefix: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__(layers=[])
        self.prefix = prefix
        self.own: list[tuple[Tensor, Tensor]] = []
        self.positions: Tensor | None = None
        self.rows: Tensor | None = None
        self.queries: Tensor
        self.first_query = 0

    @property
    def n_prefix(self) -> int:
        """Number of tokens in the shared prefix."""
        return self.prefix[0][0].shape[1] if self.prefix else 0

    def forward(
        self, model: PreTrainedModel, tokens: Tensor, positions: Tensor, *, first: int
    ) -> Tensor:
        """Run `model` on the next tokens of each row and remember their keys and values.

        Parameters
        ----------
        model : transformers.PreTrainedModel
            Inside `shared_prefix_attention`.
        tokens, positions : Tensor of shape (n_rows, n_tokens)
            Token ids and their positions in the whole text.
        first : int
            None of the positions is before it; asking the tensor waits for a GPU.

        Returns
        -------
        Tensor of shape (n_rows, vocab_size)
            Logits after the last token.
        """
        self.queries = positions
        self.first_query = first
        before = [] if self.positions is None else [self.positions]
        self.positions = torch.cat([*before, positions], dim=1)
        output = model(
            input_ids=tokens,
            position_ids=positions,
            past_key_values=self,
            prefix_cache=self,
            use_cache=True,
            logits_to_keep=1,
        )
        self.rows = None
        return output.logits[:, -1].to(tokens.device)  # layers may be on several GPUs

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: object,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values of shape (n_rows, n_kv_heads, n_tokens, head_dim)."""
        keys, values = key_states.transpose(0, 1), value_states.transpose(0, 1)
        if layer_idx == len(self.own):
            self.own.append((keys, values))
        else:
            former_keys, former_values = self.own[layer_idx]
            self.own[layer_idx] = (
                _append(former_keys, self.rows, keys),
                _append(former_values, self.rows, values),
            )
        return self.own[layer_idx]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens per row, padding included."""
        return self.n_prefix + (0 if self.positions is None else self.positions.shape[1])

    def first_visible(self, sliding_window: int | None) -> int:
        """Return the first prefix token that some query sees."""
        if sliding_window is None:
            return 0
        return min(max(0, self.first_query - sliding_window + 1), self.n_prefix)

    def hidden_prefix(self, first: int, sliding_window: int) -> Tensor:
        """Return which prefix tokens from `first` on each query does not see."""
        place = torch.arange(first, self.n_prefix, device=self.queries.device)
        return self.queries[:, :, None] - place >= sliding_window

    def hidden_own(self, sliding_window: int | None) -> Tensor:
        """Return which own tokens each query does not see, (n_rows, n_tokens, n_own)."""
        assert self.positions is not None
        distance = self.queries[:, :, None] - self.positions[:, None, :]
        hidden = distance < 0
        return hidden if sliding_window is None else hidden | (distance >= sliding_window)

    def select(self, rows: Tensor) -> None:
        """Keep the own tokens of `rows`, in that order; a row may be taken several times.

        Keys and values follow at the next `forward`, together with those of its tokens.
        """
        if self.positions is not None:
            self.positions = self.positions[rows]
        self.rows = rows


def _append(former: Tensor, rows: Tensor | None, new: Tensor) -> Tensor:
    """Return ``cat([former[:, rows], new], dim=2)`` with a single copy."""
    if rows is None:
        return torch.cat([former, new], dim=2)
    n_kv, n_rows, n_new, head_dim = new.shape
    n_former = former.shape[2]
    both = new.new_empty(n_kv, n_rows, n_former + n_new, head_dim)
    torch.index_select(former, 1, rows.to(former.device), out=both[:, :, :n_former])
    both[:, :, n_former:] = new
    return both


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
    """Attention of shape (n_rows, n_tokens, n_heads, head_dim) over prefix and own tokens.

    `key` and `value` are what `PrefixCache.update` returned. What a query may see is
    decided from positions alone, so padding and batch size cannot change it.
    """
    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:
        raise NotImplementedError(
            f"{type(module).__name__} needs logit soft-capping or attention sinks, which "
            "prefix-shared decoding does not have; use a model without them."
        )
    n_rows, n_heads, n_tokens, head_dim = query.shape
    n_kv = key.shape[0]
    # Queries of all heads that share keys are stacked: (n_kv, n_rows, group * n_tokens, dim).
    query = query.reshape(n_rows, n_kv, -1, head_dim).transpose(0, 1) * scaling
    group = n_heads // n_kv

    own = (query @ key.transpose(-1, -2)).float()
    hidden = prefix_cache.hidden_own(sliding_window).to(own.device)
    own.view(n_kv, n_rows, group, n_tokens, -1).masked_fill_(hidden[:, None], -torch.inf)
    highest = own.amax(dim=-1, keepdim=True)

    first = prefix_cache.first_visible(sliding_window)
    if first == prefix_cache.n_prefix:
        own = (own - highest).exp_()
        total = own.sum(dim=-1, keepdim=True)
        out = own.to(value.dtype) @ value
    else:
        keys, values = (
            part[:, first:] for part in prefix_cache.prefix[cast(int, module.layer_idx)]
        )
        shared = (query.reshape(n_kv, -1, head_dim) @ keys.transpose(-1, -2)).float()
        shared = shared.view(n_kv, n_rows, group * n_tokens, -1)
        if sliding_window is not None:
            hidden = prefix_cache.hidden_prefix(first, sliding_window).to(own.device)
            shared.view(n_kv, n_rows, group, n_tokens, -1).masked_fill_(
                hidden[:, None], -torch.inf
            )
        highest = torch.maximum(highest, shared.amax(dim=-1, keepdim=True))
        own, shared = (own - highest).exp_(), shared.sub_(highest).exp_()
        total = own.sum(dim=-1, keepdim=True) + shared.sum(dim=-1, keepdim=True)
        out = own.to(value.dtype) @ value
        out += (shared.flatten(1, 2).to(value.dtype) @ values).view_as(out)
    out = (out / total).to(query.dtype)
    out = out.view(n_kv, n_rows, group, n_tokens, head_dim).permute(1, 3, 0, 2, 4)
    return out.reshape(n_rows, n_tokens, n_heads, head_dim), None


@contextmanager
def shared_prefix_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let `model` attend through a `PrefixCache`, and restore it afterwards.

    Raises
    ------
    ValueError
        When the architecture does not take attention functions of others.
    """
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

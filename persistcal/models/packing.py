"""Pack prompts with common beginnings into rows, each beginning once; hidden states at ends."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.models.batches import Work, in_batches
from persistcal.models.sizes import SCORED_ON_CPU, answers_at_once, shape_of
from persistcal.store.progress import Pace

BatchSize = int | Literal["auto"]


class PromptTree(NamedTuple):
    """Several prompts as one row of tokens, each token before its descendants."""

    token_ids: list[int]  # every beginning that prompts share once
    positions: list[int]  # place of each token in its own prompts
    until: list[int]  # end of each token's descendants in the row
    ends: list[int]  # position of each prompt's last token in the row


def n_common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest start that two prompts have in common.

    The first and last of sorted prompts have in common what all have.
    """
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def make_tree(prompts: Sequence[Sequence[int]]) -> PromptTree:
    """Pack the token ids of sorted `prompts` into one row.

    >>> tree = make_tree([[5, 6, 7, 9], [5, 6, 8], [5, 6, 8, 1]])
    >>> tree.token_ids, tree.positions
    ([5, 6, 7, 9, 8, 1], [0, 1, 2, 3, 2, 3])
    >>> tree.until, tree.ends
    ([6, 6, 4, 4, 6, 6], [3, 4, 5])
    """
    tree = PromptTree([], [], [], [])
    path: list[int] = []  # positions of the previous prompt's tokens in the row
    former: Sequence[int] = []
    for prompt in prompts:
        shared = n_common(former, prompt)
        for place in path[shared:]:
            tree.until[place] = len(tree.token_ids)
        path[shared:] = range(len(tree.token_ids), len(tree.token_ids) + len(prompt) - shared)
        tree.token_ids.extend(prompt[shared:])
        tree.positions.extend(range(shared, len(prompt)))
        tree.until.extend([0] * (len(prompt) - shared))
        tree.ends.append(path[-1])
        former = prompt
    for place in path:
        tree.until[place] = len(tree.token_ids)
    return tree


class Batch(NamedTuple):
    """Trees padded on the right to one length; all arrays are of int64."""

    token_ids: np.ndarray  # shape (n_rows, length), like the next two
    positions: np.ndarray
    until: np.ndarray  # end of each token's descendants in its row; only these attend to it
    row: np.ndarray  # shape (n_prompts,): position of the last token of each prompt,
    column: np.ndarray  # in the order that they were given in
    branches: bool  # whether some token does not see all tokens before it


def _cut(prompts: Sequence[Sequence[int]], width: int) -> list[np.ndarray]:
    """Return which of the sorted `prompts` go into one tree, for each tree.

    One long tree shares most, but the cost of attention grows with the squared length of a
    row. In a decoder of `width` units a token costs about ``12 width**2`` products per layer,
    plus ``2 width`` per token of its row, masked or not. Among divisions into trees of equally
    many prompts, the cheapest one is chosen, padding included.
    """
    whole = np.array([len(prompt) for prompt in prompts])
    own_columns = whole - [0, *(n_common(*pair) for pair in pairwise(prompts))]
    cheapest, best = np.inf, np.zeros(1, dtype=np.int64)
    for n_trees in range(1, len(prompts) + 1):
        starts = np.arange(n_trees) * len(prompts) // n_trees
        lengths = np.add.reduceat(own_columns, starts) + whole[starts] - own_columns[starts]
        length = lengths.max()
        cost = n_trees * length * (6 * width + length)
        if cost < cheapest:
            cheapest, best = cost, starts
    return np.split(np.arange(len(prompts)), best[1:])


def pack_prompts(prompts: Sequence[Sequence[int]], width: int) -> Batch:
    """Pack the token ids of `prompts` into trees for a decoder of `width` units.

    Prompts can be equal, or the beginning of another, but not empty. No token of a prompt
    attends to padding.
    """
    if not all(prompts):
        raise ValueError("A prompt has no tokens; check the prompt template and the tokenizer.")
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    in_order = [prompts[i] for i in order]
    trees = [make_tree([in_order[i] for i in part]) for part in _cut(in_order, width)]
    length = max(len(tree.token_ids) for tree in trees)

    def padded(lists: list[list[int]], fill: int) -> np.ndarray:
        return np.array([values + [fill] * (length - len(values)) for values in lists])

    token_ids = padded([tree.token_ids for tree in trees], 0)
    positions = padded([tree.positions for tree in trees], 0)
    until = padded([tree.until for tree in trees], length)
    row, column = np.empty((2, len(prompts)), dtype=np.int64)
    row[order] = np.repeat(np.arange(len(trees)), [len(tree.ends) for tree in trees])
    column[order] = [end for tree in trees for end in tree.ends]
    branches = any(until != len(tree.token_ids) for tree in trees for until in tree.until)
    return Batch(token_ids, positions, until, row, column, branches)


class Packed(NamedTuple):
    """Prompts ready for a forward pass."""

    inputs: dict[str, Any]  # keyword arguments of the model or its decoder
    ends: np.ndarray  # int64, shape (2, n_prompts): row and column of each prompt's last token
    ends_there: Tensor  # the same on the model's device

    def last_tokens(self, hidden: Tensor) -> Tensor:
        """Return the entries of `hidden`, on any device, at the last token of each prompt."""
        reachable = hidden.device.type == self.ends_there.device.type
        row, column = self.ends_there.to(hidden.device) if reachable else self.ends
        return hidden[row, column]


def visible_tokens(until: Tensor) -> Tensor:
    """Return whether a token of each row (second axis) sees another one (last axis)."""
    place = torch.arange(until.shape[1], device=until.device)[:, None]
    return (place.T <= place) & (place < until[:, None])


def _attention_mask(config: Any, until: Tensor, positions: Tensor, dtype: torch.dtype) -> Any:  # noqa: ANN401
    def additive(visible: Tensor) -> Tensor:
        blocked = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=until.device)
        return torch.where(visible[:, None], torch.zeros_like(blocked), blocked)

    visible = visible_tokens(until)
    mask = additive(visible)
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return mask
    distance = positions[:, :, None] - positions[:, None, :]
    near = additive(visible & (distance < config.sliding_window))
    return {"full_attention": mask, "sliding_attention": near}


def pack(model: PreTrainedModel | PeftModel, prompts: Sequence[Sequence[int]]) -> Packed:
    """Return the token ids `prompts`, packed, on the device of `model`.

    The mask is dense on a GPU too: rows are so short that attention takes little of the time.
    """
    batch = pack_prompts(prompts, model.config.hidden_size)
    rows = np.stack([batch.token_ids, batch.positions, batch.until])
    ends = np.stack([batch.row, batch.column])
    # At once, because each copy to a GPU waits for it.
    sent = torch.from_numpy(np.concatenate([rows.ravel(), ends.ravel()])).to(model.device)
    token_ids, positions, until = sent[: rows.size].view(rows.shape)
    mask = None  # plain causal attention has faster kernels
    if batch.branches:
        mask = _attention_mask(model.config, until, positions, model.dtype)
    inputs = {
        "input_ids": token_ids,
        "attention_mask": mask,
        "position_ids": positions,
        "use_cache": False,
    }
    return Packed(inputs, ends, sent[rows.size :].view(ends.shape))


def size_of_batch(
    size: BatchSize, model: PreTrainedModel, prompts: Sequence[Sequence[int]]
) -> int:
    """Return `size`; for auto 64 on a CPU, and on a GPU as many prompts as fit into 8 GB."""
    if size != "auto":
        return size
    if not prompts or model.device.type == "cpu":
        return SCORED_ON_CPU
    return answers_at_once(shape_of(model.config), fmean(map(len, prompts)))


def over_prompts(
    compute: Callable[[list[Sequence[int]]], Tensor],
    prompts: Sequence[Sequence[int]],
    *,
    batch_size: int,
    desc: str,
    work: Work = Work(),  # noqa: B008 - immutable
) -> np.ndarray:
    """Return one number per prompt; `compute` maps the prompts of a batch to numbers.

    Prompts with a common beginning are in one batch. The number is NaN for prompts of batches
    outside `work`; a computed NaN raises a `FloatingPointError`.
    """
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    with Pace(total=len(order), desc=desc, unit=" answers") as bar:
        computed = in_batches(
            lambda batch: compute([prompts[i] for i in batch]).double().tolist(),
            order,
            batch_size=batch_size,
            work=work,
            progress=bar.update,
        )
    numbers = np.full(len(prompts), np.nan)
    numbers[list(computed)] = list(computed.values())
    if np.isnan(numbers[list(computed)]).any():
        raise FloatingPointError(
            "The model's logits are not finite, so it states no confidence; check the adapter "
            "or use another dtype."
        )
    return numbers


@torch.inference_mode()
def check_logits(
    model: PreTrainedModel | PeftModel,
    prompts: Sequence[Sequence[int]],
    packed: Tensor,
    tokens: Sequence[int] | slice = slice(None),
) -> None:
    """Refuse a model if packed prompts and separate forward passes give different logits.

    Architectures that scale or cap logits or change attention masks would otherwise train and
    score other numbers. `packed` are the logits of some `tokens`.
    """
    separate = [
        model(torch.tensor([prompt], device=model.device), use_cache=False).logits[0, -1]
        for prompt in prompts
    ]
    expected = torch.stack(separate)[:, tokens].float().to(packed.device)
    difference = (packed.float() - expected).abs().max().item()
    largest = expected.abs().max().item()
    rounding = max(8 * torch.finfo(model.dtype).eps, 1e-4)
    if not difference <= rounding * (1 + largest):
        raise ValueError(
            f"{type(model).__name__} computes its logits in a way that is not supported: they "
            f"differ by {difference:.2g} from those of a full forward pass of each prompt; use "
            "a model without logit scaling or capping, which takes attention masks as given."
        )


def blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Return the transformer blocks of `model` in order, where it lists them as most do."""
    layers = getattr(model.get_decoder(), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ValueError(
            f"{type(model).__name__} has no list of blocks called 'layers', so its hidden "
            "states cannot be read; use a model whose decoder has one."
        )
    return layers


@torch.inference_mode()
def last_hidden_states(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, last_layer: str = "after_norm"
) -> Tensor:
    """Return the output of each block at the last token of each prompt of a batch, as float32.

    The shape is (n_layers, n_prompts, n_units). `last_layer` is "after_norm" for the last
    block's output after the model's final norm, as in the paper and as transformers returns it
    for `output_hidden_states`, or "before_norm", as for other blocks.
    """
    packed = pack(model, prompts)
    outputs: list[Tensor] = []

    def keep(_block: nn.Module, _inputs: tuple, output: Tensor | tuple) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        outputs.append(packed.last_tokens(hidden).float().to(model.device))

    hooks = [block.register_forward_hook(keep) for block in blocks(model)]
    try:
        output = model.get_decoder()(**packed.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if last_layer == "after_norm":
        normed = packed.last_tokens(output.last_hidden_state)
        outputs[-1] = normed.float().to(model.device)
    return torch.stack(outputs)

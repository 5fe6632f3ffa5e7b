"""Edit answers by a change of low rank to one layer's weights."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from persistcal.confidence.hidden_states import blocks
from persistcal.laboratory.documents import Document, answer_logprobs
from persistcal.store.pace import Pace

RIDGE = 1e-3  # of the mean diagonal: added to keys' second moments, some of which may be 0


class Descent(NamedTuple):
    """How the offset of an output is found."""

    steps: int
    learning_rate: float  # of Adam, in root mean squares of the output
    most: float  # longest offset, in lengths of the output
    batch_size: int  # answers at once; each has its own optimum


def down_projection(model: PreTrainedModel, layer: int) -> nn.Linear:
    """Return the last linear map of a layer's MLP, which is what is edited."""
    layers = blocks(model)
    if layer >= len(layers):
        raise ValueError(
            f"config: change.layer is {layer}, but the model's layers are 0 to "
            f"{len(layers) - 1}; name one of them."
        )
    found = getattr(getattr(layers[layer], "mlp", None), "down_proj", None)
    if not isinstance(found, nn.Linear):
        raise ValueError(
            f"{type(model).__name__} has no mlp.down_proj in its layers, which rank_one edits; "
            "use the method fine_tuning with max_change."
        )
    return found


def edit_answers(
    model: PreTrainedModel,
    edits: Sequence[Document],
    kept: Sequence[Document],
    *,
    layer: int,
    how: Descent,
) -> PreTrainedModel:
    r"""Return `model`, one of whose matrices was changed in place so that answers are others.

    The layer's MLP maps a key, the input of its last linear map, to an output. For each edit
    the output at the last token before the answer gets the offset that makes the answer
    most probable, and `linear_edit` the weights that map the keys there to these outputs.

    `edits` are questions with their new answers; keys of all tokens of those `kept` are moved
    as little as can be.

    Meng et al. (2022), Locating and editing factual associations in GPT. They take the key at
    the last token of the subject, which a question does not name.
    """
    edited = down_projection(model, layer)
    if len(edits) > edited.in_features:
        raise ValueError(
            f"config: change.learn has {len(edits)} questions, but keys of layer {layer} have "
            f"{edited.in_features} dimensions, one for each; name smaller categories."
        )
    parts = [edits[at : at + how.batch_size] for at in range(0, len(edits), how.batch_size)]
    found = [_find_offsets(model, edited, part, how) for part in Pace(parts, "edits")]
    keys, offsets = (torch.cat(each) for each in zip(*found, strict=True))
    moment = second_moment(model, edited, kept, batch_size=how.batch_size)
    change = linear_edit(keys, offsets, moment)
    with torch.no_grad():
        edited.weight += change.to(edited.weight)
    return model


def linear_edit(keys: Tensor, offsets: Tensor, moment: Tensor) -> Tensor:
    r"""Return the change of a matrix that adds an offset to its output for each key.

    .. math:: \Delta W = R (K^\top C^{-1} K)^{-1} K^\top C^{-1}

    Of all changes with :math:`\Delta W K = R` it moves the outputs for keys with the second
    moment :math:`C` least. For one key it is the rank-one edit of ROME.

    Parameters
    ----------
    keys : Tensor of shape (n, n_inputs)
        The columns of :math:`K`.
    offsets : Tensor of shape (n, n_outputs)
        The columns of :math:`R`.
    moment : Tensor of shape (n_inputs, n_inputs)
        :math:`C`, positive definite.

    Returns
    -------
    Tensor of float64, shape (n_outputs, n_inputs)

    Raises
    ------
    ValueError
        When keys depend on each other linearly, so that offsets may contradict each other.

    Examples
    --------
    >>> linear_edit(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0]]), torch.eye(2))
    tensor([[1.5000, 0.0000]], dtype=torch.float64)
    """
    keys, offsets, moment = keys.double(), offsets.double(), moment.double()
    weighted = torch.linalg.solve(moment, keys.T)
    gram = keys @ weighted
    if torch.linalg.matrix_rank(gram, hermitian=True) < len(keys):
        raise ValueError(
            "config: change.learn has questions whose keys depend on each other, so that no "
            "edit gives each its answer; name categories with fewer questions, none of them "
            "twice, or another layer."
        )
    return offsets.T @ torch.linalg.solve(gram, weighted.T)


@torch.no_grad()
def second_moment(
    model: PreTrainedModel, layer: nn.Linear, documents: Sequence[Document], *, batch_size: int
) -> Tensor:
    """Return the mean outer product of a layer's inputs at all tokens, and a small ridge."""
    total = torch.zeros(layer.in_features, layer.in_features, dtype=torch.float64)
    seen: list[Tensor] = []
    with _hook(layer, lambda inputs, _output: seen.append(inputs)):
        for at in range(0, len(documents), batch_size):
            part = documents[at : at + batch_size]
            answer_logprobs(model, part)
            inputs = seen.pop()
            for row, (tokens, _) in zip(inputs, part, strict=True):
                there = row[: len(tokens)].cpu().double()
                total += there.T @ there
    total /= sum(len(tokens) for tokens, _ in documents)
    return total + RIDGE * total.diagonal().mean() * torch.eye(len(total), dtype=total.dtype)


def _find_offsets(
    model: PreTrainedModel, layer: nn.Linear, edits: Sequence[Document], how: Descent
) -> tuple[Tensor, Tensor]:
    """Return the keys of a batch, and the offsets that make its answers most probable."""
    rows, at = list(range(len(edits))), [edit.n_prompt - 1 for edit in edits]
    seen: list[tuple[Tensor, Tensor]] = []
    with _hook(layer, lambda i, o: seen.append((i[rows, at], o[rows, at]))), torch.no_grad():
        answer_logprobs(model, edits)
    [(keys, outputs)] = seen
    scale = outputs.float().square().mean(1, keepdim=True).sqrt()
    offsets = torch.zeros_like(outputs, dtype=torch.float32, requires_grad=True)
    places = tuple(torch.tensor(each, device=outputs.device) for each in (rows, at))

    def moved(_inputs: Tensor, output: Tensor) -> Tensor:
        return output.index_put(places, (offsets * scale).to(output.dtype), accumulate=True)

    optimizer = torch.optim.Adam([offsets], lr=how.learning_rate)
    with _hook(layer, moved):
        for _ in range(how.steps):
            optimizer.zero_grad()
            (-answer_logprobs(model, edits).sum()).backward()
            optimizer.step()
            with torch.no_grad():
                length = offsets.square().mean(1, keepdim=True).sqrt()
                offsets /= (length / how.most).clamp_min(1)
    return keys.cpu(), (offsets * scale).detach().cpu()


@contextmanager
def _hook(layer: nn.Linear, seen: Callable[[Tensor, Tensor], Tensor | None]) -> Iterator[None]:
    """Let `seen` have a layer's inputs and outputs, and put others in their place."""
    handle = layer.register_forward_hook(lambda _layer, inputs, output: seen(inputs[0], output))
    try:
        yield
    finally:
        handle.remove()

"""Cosine similarity of checkpoints' weights, read piece by piece."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

PIECE = 2**22  # weights of each checkpoint that are held at once: 32 MiB of float64


class StoredTensor(NamedTuple):
    """A tensor in an open file; ``rows[start:stop]`` are read when needed."""

    shape: tuple[int, ...]
    rows: Any


def stored_weights(files: Iterable[Any]) -> dict[str, StoredTensor]:
    """Return the weights in the open safetensors `files` of a checkpoint, by name.

    Only headers are read. Tensors of whole numbers are buffers and left out.
    """
    stored = {}
    for file in files:
        for name in file.keys():
            rows = file.get_slice(name)
            if rows.get_dtype().startswith(("F", "BF")):
                stored[name] = StoredTensor(tuple(rows.get_shape()), rows)
    return stored


def weight_similarities(checkpoints: Mapping[str, Mapping[str, StoredTensor]]) -> pd.DataFrame:
    r"""Return the cosine similarity of the flattened weights of each pair of checkpoints.

    .. math:: \frac{w \cdot v}{\lVert w \rVert \, \lVert v \rVert}

    `checkpoints` are in order of training; they must have the same tensors. Products are sums
    in float64.
    """
    shapes = _same_shapes(checkpoints)
    total = torch.zeros(len(checkpoints), len(checkpoints), dtype=torch.float64)
    for name, shape in shapes.items():
        step = max(1, PIECE // max(1, int(np.prod(shape[1:]))))
        starts = range(0, shape[0], step) if shape else ()
        pieces = [slice(start, start + step) for start in starts] if shape else [...]
        for piece in pieces:  # each read once, of all checkpoints together
            weights = [tensors[name].rows[piece] for tensors in checkpoints.values()]
            flat = torch.stack([part.flatten().double() for part in weights])
            total += flat @ flat.T
    products = total.numpy()
    norms = np.sqrt(np.diag(products))
    n_weights = sum(int(np.prod(shape)) for shape in shapes.values())
    rows = [
        (earlier, later, products[i, j] / (norms[i] * norms[j]), n_weights)
        for (i, earlier), (j, later) in combinations(enumerate(checkpoints), 2)
    ]
    return pd.DataFrame(rows, columns=["earlier", "later", "cosine", "n_weights"])


def _same_shapes(
    checkpoints: Mapping[str, Mapping[str, StoredTensor]],
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor, or refuse checkpoints that differ in one."""
    shapes = {
        checkpoint: {name: tensor.shape for name, tensor in tensors.items()}
        for checkpoint, tensors in checkpoints.items()
    }
    first, expected = next(iter(shapes.items()))
    for checkpoint, present in shapes.items():
        for name in sorted(expected.keys() | present.keys()):
            expected_shape, present_shape = (
                expected.get(name, "missing"),
                present.get(name, "missing"),
            )
            if expected_shape != present_shape:
                raise ValueError(
                    f"Tensor {name!r} is {expected_shape} in checkpoint {first!r} and "
                    f"{present_shape} in {checkpoint!r}; "
                    "only checkpoints of one architecture can be compared."
                )
    return expected

"""Prompts about one question share their beginning: encode it once.

Two candidate answers to a question give two prompts that differ only in their
last tokens. Packed into one row (the shared beginning, then each ending), the
prompts cost one forward over ``shared + endings`` tokens; an attention mask
keeps the endings from seeing each other, so every token sees exactly what it
would see alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class PackedPrompts(NamedTuple):
    """Several prompts as one row of tokens.

    Attributes
    ----------
    token_ids : list of int
        The shared beginning, then the rest of each prompt.
    positions : list of int
        Place of each token in its own prompt.
    branches : list of int
        0 for the shared beginning, ``i + 1`` for the rest of prompt i.
    ends : list of int
        Where in the row the last token of each prompt is.
    """

    token_ids: list[int]
    positions: list[int]
    branches: list[int]
    ends: list[int]


def pack_prompts(prompts: Sequence[Sequence[int]]) -> PackedPrompts:
    """Pack the token ids of `prompts` into one row.

    Raises
    ------
    ValueError
        When a prompt has no tokens.

    Examples
    --------
    >>> row = pack_prompts([[5, 6, 7, 9], [5, 6, 8]])
    >>> row.token_ids, row.positions
    ([5, 6, 7, 9, 8], [0, 1, 2, 3, 2])
    >>> row.branches, row.ends
    ([0, 0, 1, 1, 2], [3, 4])
    """
    shortest = min(len(prompt) for prompt in prompts)
    if shortest == 0:
        raise ValueError("A prompt has no tokens; check the prompt template and the tokenizer.")
    shared = 0
    while shared < shortest - 1 and len({prompt[shared] for prompt in prompts}) == 1:
        shared += 1
    token_ids, positions = list(prompts[0][:shared]), list(range(shared))
    branches, ends = [0] * shared, []
    for branch, prompt in enumerate(prompts, start=1):
        token_ids += prompt[shared:]
        positions += range(shared, len(prompt))
        branches += [branch] * (len(prompt) - shared)
        ends.append(len(token_ids) - 1)
    return PackedPrompts(token_ids, positions, branches, ends)


class Batch(NamedTuple):
    """Packed rows padded on the right to one length.

    Attributes
    ----------
    token_ids, positions : ndarray of int64, shape (n_rows, length)
    visible : ndarray of bool, shape (n_rows, length, length)
        Whether a token (second axis) sees another one (last axis).
    row, column : ndarray of int64, shape (n_prompts,)
        Where the last token of each prompt is, row by row.
    """

    token_ids: np.ndarray
    positions: np.ndarray
    visible: np.ndarray
    row: np.ndarray
    column: np.ndarray


def collate(rows: Sequence[PackedPrompts]) -> Batch:
    """Pad `rows` to one length; padding is seen by no token of a prompt."""
    length = max(len(row.token_ids) for row in rows)

    def padded(lists: list[list[int]], fill: int) -> np.ndarray:
        return np.array([values + [fill] * (length - len(values)) for values in lists])

    token_ids = padded([row.token_ids for row in rows], 0)
    positions = padded([row.positions for row in rows], 0)
    branches = padded([row.branches for row in rows], -1)
    seen, seeing = branches[:, None, :], branches[:, :, None]
    visible = (seen == 0) | (seen == seeing)
    visible &= positions[:, None, :] <= positions[:, :, None]
    return Batch(
        token_ids,
        positions,
        visible,
        np.repeat(np.arange(len(rows)), [len(row.ends) for row in rows]),
        np.array([end for row in rows for end in row.ends]),
    )

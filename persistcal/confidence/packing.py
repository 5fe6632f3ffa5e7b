"""Prompts that begin alike share their beginning: encode it once.

All confidence prompts of a study begin with the same instruction, those of a question
go on alike, and its candidate answers differ in the last tokens only. Packed into a row
as a tree (instruction, questions, candidates) each shared token is there once. A token
sees its ancestors only, which are the tokens of its own prompt before it, so it is
exactly what it would be in its prompt alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class PromptTree(NamedTuple):
    """Several prompts as one row of tokens, each token before its descendants."""

    token_ids: list[int]  # every beginning that prompts share once
    positions: list[int]  # place of each token in its own prompts
    until: list[int]  # where in the row the descendants of each token end
    ends: list[int]  # where in the row the last token of each prompt is


def _n_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the longest start that two prompts have in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def make_tree(prompts: Sequence[Sequence[int]]) -> PromptTree:
    """Pack the token ids of sorted `prompts` into one row.

    >>> tree = make_tree([[5, 6, 7, 9], [5, 6, 8], [5, 6, 8, 1]])
    >>> tree.token_ids, tree.positions
    ([5, 6, 7, 9, 8, 1], [0, 1, 2, 3, 2, 3])
    >>> tree.until, tree.ends
    ([6, 6, 4, 4, 6, 6], [3, 4, 5])
    """
    tree = PromptTree([], [], [], [])
    path: list[int] = []  # where in the row the tokens of the former prompt are
    former: Sequence[int] = []
    for prompt in prompts:
        shared = _n_common(former, prompt)
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

    token_ids: np.ndarray  # of shape (n_rows, length), as are the next two
    positions: np.ndarray
    until: np.ndarray  # where in its row the descendants of each token end, which alone see it
    row: np.ndarray  # of shape (n_prompts,): where the last token of each prompt is,
    column: np.ndarray  # in the order that they were given in
    branches: bool  # whether some token does not see all tokens before it


def _cut(prompts: Sequence[Sequence[int]], width: int) -> list[np.ndarray]:
    """Return which of the sorted `prompts` go into one tree, for each tree.

    One long tree shares most, but attention to a row costs its length squared. A token of
    a decoder of `width` units takes about ``12 width**2`` products in each layer, and
    ``2 width`` more for each token of its row, seen or not. Of all divisions into trees of
    equally many prompts the one is taken that costs least, padding included.
    """
    own = np.array(
        [
            len(prompt) - _n_common(former, prompt)
            for former, prompt in zip([[], *prompts], prompts, strict=False)
        ]
    )
    whole = np.array([len(prompt) for prompt in prompts])
    cheapest, best = np.inf, np.zeros(1, dtype=np.int64)
    for n_trees in range(1, len(prompts) + 1):
        starts = np.arange(n_trees) * len(prompts) // n_trees
        length = (np.add.reduceat(own, starts) + whole[starts] - own[starts]).max()
        cost = n_trees * length * (6 * width + length)
        if cost < cheapest:
            cheapest, best = cost, starts
    return np.split(np.arange(len(prompts)), best[1:])


def pack_prompts(prompts: Sequence[Sequence[int]], width: int) -> Batch:
    """Pack the token ids of `prompts` into trees for a decoder of `width` units.

    Prompts may be equal, or the beginning of another, but not empty. Padding is seen by no
    token of a prompt.
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

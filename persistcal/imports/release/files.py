"""Names, shards and tensors of the authors' released results.

They are one tree of shards, each named for the range `{begin}-{end}` of questions that it
covers; arrays run over such a range (`span`).
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.imports.release.safe_load import load_arrays, load_lists

ROOT = "results/conset"  # the folder of the archive that holds everything
LABELS = {1: "correct", 2: "incorrect", 3: "not_attempted"}
NO_ANSWER = -1  # as in the release; a positive label is one of `LABELS`
UNKNOWN = -2  # the release does not say
ROUNDING = 1e-5  # by which float32 sums of probabilities may exceed 1

Span = tuple[int, int]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class ReleaseError(ValueError):
    """The released files contradict each other or their own description."""


class Shard(NamedTuple):
    """A file or folder of the release that covers questions `begin` to `end` (exclusive)."""

    begin: int
    end: int
    path: str

    def of(self, span: Span) -> tuple[slice, slice]:
        """Return where the shard lies in an array over `span`, and its rows there."""
        begin, end = max(self.begin, span[0]), min(self.end, span[1])
        return (
            slice(begin - span[0], end - span[0]),
            slice(begin - self.begin, end - self.begin),
        )


def question_id(dataset: str, index: int) -> str:
    """Return the identifier of a question of the release."""
    return f"{dataset}-{index}"


def model_folder(repo: str) -> str:
    """Return the name under which the release files a Hub repo's results."""
    return repo.rsplit("/", 1)[-1]


def check_tensor(value: object, shape: tuple[int, ...], kind: str, where: str) -> NDArray[Any]:
    """Return a tensor of that shape, of floats ("f") or whole numbers ("i"), or refuse it."""
    tensor = value if isinstance(value, np.ndarray) else None
    if tensor is None or tensor.shape != shape or tensor.dtype.kind != kind:
        held = "no tensor" if tensor is None else f"{tensor.dtype}{tensor.shape}"
        kinds = {"f": "float", "i": "whole-number"}
        raise ReleaseError(
            f"{where} holds {held}, but needs a {kinds[kind]} tensor of shape {shape}."
        )
    return tensor


class Tree:
    """The unpacked release: files by their paths below its root, which errors name whole."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def named(self, path: str) -> str:
        """Return the whole path of a file or folder."""
        return str(self._root / path)

    def has(self, path: str) -> bool:
        """Return whether there is such a file."""
        return (self._root / path).is_file()

    def has_any(self, folder: str, prefix: str) -> bool:
        """Return whether a folder has tensors of shards whose names begin so."""
        return any((self._root / folder).glob(f"{prefix}_*.pt"))

    def lists(self, path: str, n: int, depth: int) -> list[Any]:
        """Load lists of strings, nested `depth` levels deep, about `n` questions."""
        lists = load_lists(self._root / path, depth=depth)
        if len(lists) != n:
            raise ReleaseError(
                f"{self.named(path)}: holds {len(lists)} questions, but its folder says {n}."
            )
        return lists

    def arrays(self, path: str) -> object:
        """Load an array, or a dict of arrays."""
        return load_arrays(self._root / path)

    def shards(
        self, folder: str, prefix: str, suffix: str, span: Span
    ) -> tuple[list[Shard], list[Span]]:
        """Return the shards `{prefix}{begin}-{end}{suffix}` of a folder, and gaps in `span`.

        Two of them that cover the same question of `span` are refused.
        """
        name = re.compile(
            f"{re.escape(prefix)}([0-9]{{1,12}})-([0-9]{{1,12}}){re.escape(suffix)}"
        )
        there = self._root / folder
        shards = sorted(
            Shard(int(match[1]), int(match[2]), f"{folder}/{path.name}")
            for path in (there.iterdir() if there.is_dir() else ())
            if (match := name.fullmatch(path.name))
        )
        shards = [s for s in shards if max(s.begin, span[0]) < min(s.end, span[1])]
        gaps, covered, before = [], span[0], ""
        for shard in shards:
            if shard.begin < covered and before:
                raise ReleaseError(
                    f"{self.named(shard.path)}: covers questions that {before} covers too; "
                    "keep one."
                )
            if shard.begin > covered:
                gaps.append((covered, shard.begin))
            covered, before = shard.end, shard.path.rpartition("/")[2]
        if covered < span[1]:
            gaps.append((covered, span[1]))
        return shards, gaps

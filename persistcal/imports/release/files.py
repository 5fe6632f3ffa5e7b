"""Names, shards and tensors of the authors' released results.

The release is one tree of shards, each named for the range `{begin}-{end}` of
questions that it covers; arrays run over such a range (`span`).
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TREE = "results/conset"  # the folder of the archive that holds everything
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
    """A file or folder that covers questions `begin` to `end` (exclusive)."""

    begin: int
    end: int
    path: Path

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


def check_tensor(array: NDArray[Any], shape: tuple[int, ...], kind: str, where: str) -> None:
    """Refuse an array of another shape, or not of floats ("f") or of whole numbers ("i")."""
    if array.shape != shape or array.dtype.kind != kind:
        kinds = {"f": "float", "i": "whole-number"}
        raise ReleaseError(
            f"{where} holds {array.dtype}{array.shape}, but needs a {kinds[kind]} tensor of "
            f"shape {shape}."
        )


def find_shards(
    folder: Path, prefix: str, suffix: str, span: Span
) -> tuple[list[Shard], list[Span]]:
    """Return the shards `{prefix}{begin}-{end}{suffix}` of `folder`, and the gaps in `span`.

    Raises
    ------
    ReleaseError
        When two of them cover the same question of `span`.
    """
    name = re.compile(re.escape(prefix) + "([0-9]{1,12})-([0-9]{1,12})" + re.escape(suffix))
    shards = sorted(
        Shard(int(match[1]), int(match[2]), path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := name.fullmatch(path.name))
    )
    shards = [shard for shard in shards if max(shard.begin, span[0]) < min(shard.end, span[1])]
    gaps, covered, before = [], span[0], None
    for shard in shards:
        if before and shard.begin < before.end:
            raise ReleaseError(
                f"{shard.path}: covers questions that {before.path.name} covers too; keep one."
            )
        if shard.begin > covered:
            gaps.append((covered, shard.begin))
        covered, before = shard.end, shard
    if covered < span[1]:
        gaps.append((covered, span[1]))
    return shards, gaps

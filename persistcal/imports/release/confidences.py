"""Read estimators' confidences from the authors' released results.

What is not there is noted by the path that it would have; what contradicts itself
is an error.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from persistcal.imports.release.files import (
    LABELS,
    NO_ANSWER,
    ROUNDING,
    UNKNOWN,
    Floats,
    Ints,
    ReleaseError,
    Shard,
    Span,
    find_shards,
)
from persistcal.imports.release.safe_load import load_arrays


class Confidences(NamedTuple):
    """One estimator's confidences in a checkpoint's answers to a span of questions.

    Attributes
    ----------
    confidence : float ndarray of shape (n,)
        In [0, 1]; NaN where there is none.
    label : int ndarray of shape (n,)
        What the files say about the answers, `UNKNOWN` where none covers them.
    missing : list of str
        Paths of absent files.
    """

    confidence: Floats
    label: Ints
    missing: list[str]


def read_confidences(
    root: Path, folder: str, prefix: str, span: Span, labels: Ints
) -> Confidences:
    """Read the files `{prefix}_{begin}-{end}.pt` of `folder` that cover `span`.

    Parameters
    ----------
    root : Path
        The release's tree.
    folder, prefix : str
        Folder below `root`, and what the names of the files begin with.
    span : (int, int)
        Questions.
    labels : int ndarray of shape (n,)
        Labels of the answers that the confidences are about.

    Raises
    ------
    ReleaseError
        When a file has another shape than its name says, a confidence is not in
        [0, 1], or a label is not that of the answer in `labels`.
    """
    shards, gaps = find_shards(root / folder, f"{prefix}_", ".pt", span)
    n = span[1] - span[0]
    read = Confidences(
        np.full(n, np.nan),
        np.full(n, UNKNOWN),
        [f"{folder}/{prefix}_{begin}-{end}.pt" for begin, end in gaps],
    )
    for shard in shards:
        here, rows = shard.of(span)
        confidence, judged = (part[rows] for part in _load_confidences(shard))
        read.confidence[here], read.label[here] = np.clip(confidence, 0, 1), judged
        expected, stated = labels[here], ~np.isnan(confidence)
        # A question that the authors blacklisted has no confidence but may have an answer.
        differs = (
            (judged != expected) & ((judged != NO_ANSWER) | stated) & (expected != UNKNOWN)
        )
        differs |= stated & (judged == NO_ANSWER)
        if differs.any():
            i = int(differs.argmax())
            raise ReleaseError(
                f"{shard.path}: judge_labels holds {judged[i]} for question "
                f"{span[0] + here.start + i}, but judge.pt holds {expected[i]} for the top "
                "cluster; they must be of the same release."
            )
    return read


def _load_confidences(shard: Shard) -> tuple[Floats, Ints]:
    """Return the confidences and labels of one file, checked by themselves."""
    held = load_arrays(shard.path)
    if not isinstance(held, dict):
        raise ReleaseError(f"{shard.path}: holds no dict of 'confs' and 'judge_labels'.")
    n = shard.end - shard.begin
    arrays = []
    for key, kind in (("confs", "f"), ("judge_labels", "i")):
        array = held.get(key)
        if not isinstance(array, np.ndarray):
            raise ReleaseError(f"{shard.path}: holds no tensor {key!r}.")
        if array.dtype.kind != kind or array.shape != (n,):
            raise ReleaseError(
                f"{shard.path}: {key!r} holds {array.dtype}{array.shape}, but needs a "
                f"{'float' if kind == 'f' else 'whole-number'} tensor of shape ({n},)."
            )
        arrays.append(array)
    confidence, labels = arrays
    if "eval_range" in held and not np.array_equal(
        held["eval_range"], (shard.begin, shard.end)
    ):
        raise ReleaseError(
            f"{shard.path}: 'eval_range' is {held['eval_range']}, but its name says "
            f"{shard.begin}-{shard.end}."
        )
    outside = (confidence < -ROUNDING) | (confidence > 1 + ROUNDING)
    if outside.any():
        i = int(outside.argmax())
        raise ReleaseError(
            f"{shard.path}: confidence {confidence[i]} for question {shard.begin + i} is not "
            "in [0, 1]."
        )
    if (odd := ~np.isin(labels, (NO_ANSWER, *LABELS))).any():
        i = int(odd.argmax())
        raise ReleaseError(
            f"{shard.path}: label {labels[i]} for question {shard.begin + i} is none of "
            "1, 2, 3 and -1."
        )
    return confidence, labels

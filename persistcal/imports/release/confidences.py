"""Read estimators' confidences from the authors' released results.

What is not there is noted by the path that it would have; what contradicts itself
is an error.
"""

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
    Tree,
    check_tensor,
)


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
    tree: Tree, folder: str, prefix: str, span: Span, labels: Ints
) -> Confidences:
    """Read the files `{prefix}_{begin}-{end}.pt` of `folder` that cover `span`.

    `labels` are those of the answers that the confidences are about; the files must agree.
    """
    shards, gaps = tree.shards(folder, f"{prefix}_", ".pt", span)
    n = span[1] - span[0]
    read = Confidences(
        np.full(n, np.nan),
        np.full(n, UNKNOWN),
        [f"{folder}/{prefix}_{begin}-{end}.pt" for begin, end in gaps],
    )
    for shard in shards:
        here, rows = shard.of(span)
        confidence, judged = (part[rows] for part in _load_confidences(tree, shard))
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
                f"{tree.named(shard.path)}: judge_labels holds {judged[i]} for question "
                f"{span[0] + here.start + i}, but judge.pt holds {expected[i]} for the top "
                "cluster; they must be of the same release."
            )
    return read


def _load_confidences(tree: Tree, shard: Shard) -> tuple[Floats, Ints]:
    """Return the confidences and labels of one file, checked by themselves."""
    held, path = tree.arrays(shard.path), tree.named(shard.path)
    if not isinstance(held, dict):
        raise ReleaseError(f"{path}: holds no dict of 'confs' and 'judge_labels'.")
    for key, kind in (("confs", "f"), ("judge_labels", "i")):
        if not isinstance(held.get(key), np.ndarray):
            raise ReleaseError(f"{path}: holds no tensor {key!r}.")
        size = shard.end - shard.begin
        check_tensor(held[key], (size,), kind, f"{path}: {key!r}")
    said = held.get("eval_range", (shard.begin, shard.end))
    if not np.array_equal(said, (shard.begin, shard.end)):
        raise ReleaseError(
            f"{path}: 'eval_range' is {said}, but its name says {shard.begin}-{shard.end}."
        )
    confidence, labels = held["confs"], held["judge_labels"]
    for values, wrong, name, rule in (
        (confidence, np.abs(confidence - 0.5) > 0.5 + ROUNDING, "confidence", "not in [0, 1]"),
        (labels, ~np.isin(labels, (NO_ANSWER, *LABELS)), "label", "none of 1, 2, 3 and -1"),
    ):
        if wrong.any():
            i = int(wrong.argmax())
            raise ReleaseError(
                f"{path}: {name} {values[i]} for question {shard.begin + i} is {rule}."
            )
    return confidence, labels

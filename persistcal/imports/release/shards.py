"""Read the candidates, judge labels and estimators' confidences that the release holds.

What is not there is noted by the path that it would have; what contradicts itself is an error.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.imports.release.files import (
    LABELS,
    NO_ANSWER,
    ROUNDING,
    UNKNOWN,
    Flags,
    Floats,
    Ints,
    ReleaseError,
    Shard,
    Span,
    Tree,
    check_tensor,
    model_folder,
    question_id,
)
from persistcal.store import artifacts

log = logging.getLogger(__name__)

N_BEAMS = 10
STRINGS, SCORES = "beam_strs.pkl", "beam_lls.pt"
GROUPS, PROBABILITIES, JUDGED = "beam_group_strs.pkl", "beam_group_probs.pt", "judge.pt"


class ReleasedAnswers(NamedTuple):
    """The answers that a checkpoint stands by, one for each question of a span."""

    confidence: Floats  # probability of the most probable cluster; NaN without one
    label: Ints  # its label: a key of `LABELS`, `NO_ANSWER` or `UNKNOWN`
    skipped: Flags  # questions that the authors left without candidates


class ReleasedCandidates(NamedTuple):
    """A checkpoint's candidates for a dataset: tables, top answers by split, absent files."""

    beams: pd.DataFrame
    clusters: pd.DataFrame
    labels: pd.DataFrame
    answers: dict[str, ReleasedAnswers]
    missing: list[str]


def _load_tensor(tree: Tree, path: str, n: int, kind: str) -> NDArray[Any]:
    return check_tensor(tree.arrays(path), (n, N_BEAMS), kind, f"{tree.named(path)}:")


def _beam_rows(
    ids: list[str], texts: list[list[str] | None], logprobs: Floats, path: str
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    n_unscored = 0
    for name, beams, scores in zip(ids, texts, logprobs, strict=True):
        if beams is None:
            continue
        if len(beams) != N_BEAMS:
            raise ReleaseError(f"{path}: {len(beams)} strings for {name}, but needs {N_BEAMS}.")
        rows += [
            (name, beam, text, float(score), *[None] * 4)  # and no more
            for beam, (text, score) in enumerate(zip(beams, scores, strict=True))
            if not np.isnan(score)
        ]
        n_unscored += int(np.isnan(scores).sum())
    if n_unscored:
        log.warning("%s: left out %d beams, whose scores are NaN", path, n_unscored)
    return rows


def _rank(
    groups: list[list[str]], probabilities: Floats, labels: Ints, folder: str, name: str
) -> list[tuple[list[str], float, int]]:
    """Return (members, probability, label) of a question's clusters, most probable first."""

    def refuse(file: str, what: str) -> ReleaseError:
        return ReleaseError(f"{folder}/{file}: {what} for {name}.")

    n = len(groups)
    if n > N_BEAMS or not all(groups):
        raise refuse(GROUPS, "an empty cluster, or more clusters than beams,")
    # Comparisons are written so that NaN fails them.
    if not ((probabilities >= 0) & (probabilities <= 1 + ROUNDING)).all():
        raise refuse(PROBABILITIES, "a probability outside [0, 1]")
    if probabilities[n:].any():
        raise refuse(PROBABILITIES, f"more probabilities than its {n} clusters")
    if not np.isin(labels[:n], (NO_ANSWER, UNKNOWN, *LABELS)).all():
        raise refuse(JUDGED, "a label other than 1, 2, 3 and -1")
    # The authors never take an answer that was not judged for the prediction.
    order = np.lexsort((-probabilities[:n], labels[:n] == NO_ANSWER))
    return [(groups[j], min(float(probabilities[j]), 1.0), int(labels[j])) for j in order]


class _Rows(NamedTuple):
    beams: list[tuple[Any, ...]]
    clusters: list[tuple[Any, ...]]
    labels: list[tuple[Any, ...]]
    missing: list[str]


def _read_shard(
    shard: Shard, span: Span, dataset: str, tree: Tree, read: _Rows, top: ReleasedAnswers
) -> None:
    """Append the shard's part of `span` to `read` and write it into `top`."""
    size = shard.end - shard.begin
    here, rows = shard.of(span)
    ids = [question_id(dataset, span[0] + i) for i in range(here.start, here.stop)]
    folder = f"{shard.path}/beam"
    names = (STRINGS, SCORES, GROUPS, PROBABILITIES, JUDGED)
    absent = [name for name in names if not tree.has(f"{folder}/{name}")]
    read.missing.extend(f"{folder}/{name}" for name in absent)

    if STRINGS not in absent and SCORES not in absent:
        texts = tree.lists(f"{folder}/{STRINGS}", size, 2)[rows]
        logprobs = _load_tensor(tree, f"{folder}/{SCORES}", size, "f")[rows]
        read.beams.extend(_beam_rows(ids, texts, logprobs, tree.named(f"{folder}/{STRINGS}")))
    if GROUPS in absent or PROBABILITIES in absent:
        return
    groups = tree.lists(f"{folder}/{GROUPS}", size, 3)[rows]
    probabilities = _load_tensor(tree, f"{folder}/{PROBABILITIES}", size, "f")[rows]
    n_surplus, judged = 0, np.full((len(ids), N_BEAMS), UNKNOWN)
    if JUDGED not in absent:
        judged = _load_tensor(tree, f"{folder}/{JUDGED}", size, "i")[rows]
    for i, (name, group) in enumerate(zip(ids, groups, strict=True)):
        ranked = _rank(group or [], probabilities[i], judged[i], tree.named(folder), name)
        n_surplus += int((judged[i, len(ranked) :] > 0).sum())
        read.clusters.extend(
            (name, rank, members[0], p, members) for rank, (members, p, _) in enumerate(ranked)
        )
        read.labels.extend(
            (name, rank, LABELS[label], "release")
            for rank, (_, _, label) in enumerate(ranked)
            if label in LABELS
        )
        top.label[here.start + i] = ranked[0][2] if ranked else NO_ANSWER
        if top.label[here.start + i] != NO_ANSWER:
            top.confidence[here.start + i] = ranked[0][1]
        top.skipped[here.start + i] = group is None
    if n_surplus:  # as in the authors' evaluation
        log.info("%s: ignored %d labels beyond the clusters", f"{folder}/{JUDGED}", n_surplus)


def read_candidates(
    tree: Tree, dataset: str, repo: str, revision: str, splits: Mapping[str, Span]
) -> ReleasedCandidates:
    """Read the candidates of a checkpoint for the splits of a dataset."""
    folder = f"{dataset}/{model_folder(repo)}/{revision}"
    read = _Rows([], [], [], [])
    answers = {}
    for split, span in splits.items():
        n = span[1] - span[0]
        top = ReleasedAnswers(np.full(n, np.nan), np.full(n, UNKNOWN), np.zeros(n, bool))
        shards, gaps = tree.shards(folder, "", "", span)
        for shard in shards:
            _read_shard(shard, span, dataset, tree, read, top)
        read.missing.extend(f"{folder}/{b}-{e}/beam" for b, e in gaps)
        answers[split] = top
    return ReleasedCandidates(
        pd.DataFrame(read.beams, columns=artifacts.BEAMS.schema.names),
        pd.DataFrame(read.clusters, columns=artifacts.CLUSTERS.schema.names),
        pd.DataFrame(read.labels, columns=artifacts.LABELS.schema.names),
        answers,
        list(dict.fromkeys(read.missing)),
    )


class Confidences(NamedTuple):
    """One estimator's confidences in a checkpoint's answers to a span of questions."""

    confidence: Floats  # in [0, 1]; NaN where there is none
    label: Ints  # what the files say about the answers, `UNKNOWN` where none covers them
    missing: list[str]  # paths of absent files


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
        if differs.any():
            i = int(differs.argmax())
            raise ReleaseError(
                f"{tree.named(shard.path)}: judge_labels holds {judged[i]} for question "
                f"{span[0] + here.start + i}, but judge.pt holds {expected[i]} for the top "
                "cluster; they must be of the same release."
            )
        if (of_nothing := stated & (judged == NO_ANSWER)).any():
            i = int(of_nothing.argmax())
            raise ReleaseError(
                f"{tree.named(shard.path)}: confs holds {confidence[i]:g} for question "
                f"{span[0] + here.start + i}, but judge_labels says that it has no answer; "
                "download the release again."
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

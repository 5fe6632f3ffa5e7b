"""Revisions as they were looked up, compared with each other and with those that were used.

A module of its own: an edit of it must not run what only fetches checkpoints.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from persistcal.models.checkpoint import (
    TOKENIZER_FILES,
    Checkpoint,
    CheckpointError,
    matching,
)
from persistcal.store.files import exists, folder_of, inside, last_part, names_in

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Revision(Checkpoint):
    """A checkpoint that was looked up, and whether others may hold the same weights.

    They may where it says so, or where what the config says `beside_weights` (how the
    checkpoint is asked, for one) makes two states of the same weights. Its record lies in the
    model's folder, beside those of the other checkpoints.
    """

    allow_identical_weights: bool = False
    beside_weights: dict[str, Any] = field(default_factory=dict)

    def resolved(self, *, dtype: str | None, record: str) -> Checkpoint:
        """Return the record of the checkpoint, as jobs read it."""
        content = Checkpoint.content(self)
        del content["allow_identical_weights"], content["beside_weights"]
        return Checkpoint(**{**content, "dtype": dtype}, record=record)


def changed_files(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return in order the files whose digests differ, or that only one of both has.

    >>> changed_files({"a": "1", "b": "1"}, {"a": "1", "b": "2", "c": "3"})
    ['b', 'c']
    """
    return sorted(
        name for name in one.keys() | other.keys() if one.get(name) != other.get(name)
    )


def check_siblings(revision: Revision) -> None:
    """Refuse a checkpoint with weights of another; warn of one with another tokenizer.

    Repositories have served the same weights, or a shard of another checkpoint, under several
    names. Training changes every file. Of two checkpoints the later one finds the earlier, in
    whatever order jobs run.
    """
    folder = folder_of(str(revision.record))
    model, own = last_part(folder), revision.name
    other_tokenizers = {}
    for other in (Revision.read(inside(folder, name)) for name in names_in(folder, "*.json")):
        if (name := other.name) == own:
            continue
        theirs = set(other.weights.values())
        shared = [file for file, digest in revision.weights.items() if digest in theirs]
        allowed = revision.allow_identical_weights or other.allow_identical_weights
        if shared and not allowed and revision.beside_weights == other.beside_weights:
            every = len(shared) == len(revision.weights)
            which = "all weights" if every else ", ".join(shared)
            raise CheckpointError(
                f"checkpoints {own} and {name} of {model} have {which} in "
                "common, so one is not what its name says; remove one from the config and its "
                f"file from {folder}, or set allow_identical_weights of one to true."
            )
        if differ := matching(changed_files(revision.files, other.files), TOKENIZER_FILES):
            other_tokenizers[name] = ", ".join(differ)
    if other_tokenizers:
        log.warning(
            "checkpoint %s of %s does not have the tokenizer of %s; check that this is meant.",
            *(own, model),
            " and ".join(f"{name} ({differ})" for name, differ in other_tokenizers.items()),
        )


def check_unchanged(found: Checkpoint, record: str) -> None:
    """Refuse a revision that has changed since results were made from the one in `record`."""
    if not exists(record):
        return
    used = Checkpoint.read(record)
    _check_same(used, found, record)
    if used.adapter and found.adapter:
        _check_same(used.adapter, found.adapter, record)


def _check_same(used: Checkpoint, found: Checkpoint, record: str) -> None:
    """Refuse `found` where it is called as what was `used`, and holds something else."""
    changed = changed_files(used.weights, found.weights)
    if used.files:  # records of older versions do not have them
        changed += changed_files(used.files, found.files)
    if changed and (used.repo, used.revision) == (found.repo, found.revision):
        what = "its weights" if changed[0] in found.weights else changed[0]
        pin = (
            f"set its revision to {used.commit} to keep them"
            if used.commit
            else f"put {'the weights' if what == 'its weights' else 'it'} back to keep them"
        )
        raise CheckpointError(
            f"{found.repo} ({found.revision}) has changed {what} since results were made; "
            f"{pin}, or delete {record} to make them again."
        )

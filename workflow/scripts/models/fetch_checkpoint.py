"""Fetch the files of a checkpoint into the Hub's cache, so that jobs need no connection."""

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import torch

from persistcal.confidence.verbalised import digit_tokens
from persistcal.models import hub
from persistcal.models.checkpoint import (
    TOKENIZER_FILES,
    Checkpoint,
    CheckpointError,
    changed_files,
    matching,
    shared_weights,
)
from persistcal.models.load import build_empty, load_tokenizer
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def _read(revision_path: Path) -> tuple[Checkpoint, bool]:
    """Return what `resolve_checkpoint` wrote, and whether its weights may be others' too."""
    entry: dict[str, Any] = json.loads(revision_path.read_text(encoding="utf-8"))
    allowed = entry.pop("allow_identical_weights")
    return Checkpoint(**entry), allowed


def _compare_with_siblings(path: Path) -> None:
    # Of two checkpoints, the one resolved later finds the other, however jobs are ordered.
    (checkpoint, allowed), model, other_tokenizers = _read(path), path.parent.name, {}
    for sibling in sorted(path.parent.glob("*.json")):
        if sibling == path:
            continue
        other, other_allowed = _read(sibling)
        shared = shared_weights(checkpoint.weights, other.weights)
        if shared and not (allowed or other_allowed):
            every = len(shared) == len(checkpoint.weights)
            which = "all weights" if every else ", ".join(shared)
            raise CheckpointError(
                f"checkpoints {path.stem} and {sibling.stem} of {model} have {which} in "
                "common, so one is not what its name says; remove one from the config and its "
                f"file from {path.parent}, or set allow_identical_weights of one to true."
            )
        changed = changed_files(checkpoint.files, other.files)
        if differ := matching(changed, TOKENIZER_FILES):
            other_tokenizers[sibling.stem] = ", ".join(differ)
    if other_tokenizers:
        log.warning(
            "checkpoint %s of %s does not have the tokenizer of %s; check that this is meant.",
            *(path.stem, model),
            " and ".join(f"{name} ({differ})" for name, differ in other_tokenizers.items()),
        )


def fetch_checkpoint(revision_path: str, checkpoint_path: str, *, dtype: str | None) -> None:
    """Download a checkpoint, unless it is in the cache, and write its record.

    Before weights are downloaded, two checkpoints of a model with weights in
    common are refused, and a tokenizer that does not have each digit as one token.

    Parameters
    ----------
    revision_path : str
        JSON by `resolve_checkpoint`, beside those of the model's other checkpoints.
    checkpoint_path : str
        JSON with repo, revision, commit, weights, files and dtype.
    dtype : str or None
        Of the computation; None for that of the device.
    """
    _compare_with_siblings(Path(revision_path))
    resolved, _ = _read(Path(revision_path))
    checkpoint = dataclasses.replace(resolved, dtype=dtype, record=Path(checkpoint_path))
    digit_tokens(load_tokenizer(str(hub.fetch_small_checked(checkpoint))))
    folder = hub.fetch_checked(checkpoint)
    build_empty(str(folder), None, torch.float32)  # refuses what no job could load
    checkpoint.write(checkpoint_path)
    log.info("%s (%s) is in %s", checkpoint.repo, checkpoint.revision, folder)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    fetch_checkpoint(
        snakemake.input.revision,
        snakemake.output.checkpoint,
        dtype=snakemake.params.dtype,
    )

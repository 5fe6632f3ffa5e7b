"""Fetch the files of a checkpoint into the Hub's cache, so that jobs need no connection."""

import json
import logging
from pathlib import Path
from typing import Any

from persistcal.confidence.verbalised import digit_tokens
from persistcal.logs import log_to
from persistcal.models import hub
from persistcal.models.load import load_tokenizer

log = logging.getLogger(__name__)


def _refuse_shared_weights(path: Path, entry: dict[str, Any]) -> None:
    # Of two checkpoints, the one resolved later finds the other, however jobs are ordered.
    for sibling in sorted(path.parent.glob("*.json")):
        if sibling == path:
            continue
        other = json.loads(sibling.read_text())
        shared = hub.shared_weights(entry["weights"], other["weights"])
        if not shared or entry["allow_identical_weights"] or other["allow_identical_weights"]:
            continue
        which = "all weights" if len(shared) == len(entry["weights"]) else ", ".join(shared)
        raise hub.CheckpointError(
            f"checkpoints {path.stem} and {sibling.stem} of {path.parent.name} have {which} in "
            "common, so one is not what its name says; remove one from the config and its file "
            f"from {path.parent}, or set allow_identical_weights of one to true."
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
        JSON with repo, revision, commit, weights and dtype.
    dtype : str or None
        Of the computation; None for that of the device.
    """
    entry = json.loads(Path(revision_path).read_text())
    _refuse_shared_weights(Path(revision_path), entry)
    revision = hub.Revision(**{name: entry[name] for name in hub.Revision._fields})
    folder = hub.fetch_files(revision, hub.SMALL_FILES)
    digit_tokens(load_tokenizer(str(folder)))
    folder = hub.fetch_files(revision, [*hub.SMALL_FILES, *revision.weights])
    if revision.commit:  # those of a local folder were just computed
        hub.check_digests(folder, revision.weights)
    record = {**revision._asdict(), "dtype": dtype}
    Path(checkpoint_path).write_text(json.dumps(record, indent=2) + "\n")
    log.info("%s (%s) is in %s", revision.repo, revision.revision, folder)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    fetch_checkpoint(
        snakemake.input.revision,
        snakemake.output.checkpoint,
        dtype=snakemake.params.dtype,
    )

"""Look up what a checkpoint or an adapter is: its commit and the digests of its files."""

import json
import logging
from pathlib import Path

from persistcal.models.checkpoint import Checkpoint, CheckpointError, changed_files
from persistcal.models.hub import resolve_revision
from persistcal.store.files import Digests, write_whole
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def resolve_checkpoint(
    revision_path: str,
    *,
    repo: str,
    revision: str,
    record_path: str,
    allow_identical_weights: bool = False,
) -> None:
    """Write what `revision` of `repo` is, without downloading weights.

    Parameters
    ----------
    revision_path : str
        JSON with repo, revision, commit, weights, files and allow_identical_weights.
    repo : str
        Hub id, or a local folder with one sub-folder per revision.
    revision : str
        Branch, tag or commit, or the sub-folder's name.
    record_path : str
        JSON of the same checkpoint as results were made with it, if there are any.
    allow_identical_weights : bool
        Whether another checkpoint of the model may hold the same weights.
    """
    resolved = resolve_revision(repo, revision, digests=Digests.beside(record_path))
    if Path(record_path).exists():
        used = Checkpoint.read(record_path)
        same = (used.repo, used.revision) == (resolved.repo, resolved.revision)
        changed = changed_files(used.weights, resolved.weights)
        if used.files:  # records of older versions do not have them
            changed += changed_files(used.files, resolved.files)
        if same and changed:
            what = "its weights" if changed[0] in resolved.weights else changed[0]
            pin = (
                f"set its revision to {used.commit} to keep them"
                if used.commit
                else f"put {'the weights' if what == 'its weights' else 'it'} back to keep them"
            )
            raise CheckpointError(
                f"{resolved.repo} ({revision}) has changed {what} since results were made; "
                f"{pin}, or delete {record_path} to make them again."
            )
    entry = {**resolved.content(), "allow_identical_weights": allow_identical_weights}
    write_whole(revision_path, json.dumps(entry, indent=2) + "\n")
    log.info("%s (%s) is commit %s", resolved.repo, revision, resolved.commit)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    resolve_checkpoint(
        snakemake.output.revision,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
        record_path=snakemake.params.record,
        allow_identical_weights=snakemake.params.get("allow_identical_weights", False),
    )

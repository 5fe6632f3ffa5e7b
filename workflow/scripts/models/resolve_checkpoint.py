"""Look up what a checkpoint is: its commit and the digests of its weights."""

import json
import logging
from pathlib import Path

from persistcal.logs import log_to
from persistcal.models.hub import CheckpointError, resolve_revision

log = logging.getLogger(__name__)


def resolve_checkpoint(
    revision_path: str,
    *,
    repo: str,
    revision: str,
    record_path: str,
    allow_identical_weights: bool,
) -> None:
    """Write what `revision` of `repo` is, without downloading weights.

    Parameters
    ----------
    revision_path : str
        JSON with repo, revision, commit, weights and allow_identical_weights.
    repo : str
        Hub id, or a local folder with one sub-folder per revision.
    revision : str
        Branch, tag or commit, or the sub-folder's name.
    record_path : str
        JSON of the same checkpoint as results were made with it, if there are any.
    allow_identical_weights : bool
        Whether another checkpoint of the model may hold the same weights.
    """
    found = resolve_revision(repo, revision)
    record = Path(record_path)
    if record.exists():
        used = json.loads(record.read_text())
        same = (used["repo"], used["revision"]) == (found.repo, found.revision)
        if same and used["weights"] != found.weights:
            pin = (
                f"set its revision to {used['commit']} to keep them"
                if used["commit"]
                else ("put the weights back to keep them")
            )
            raise CheckpointError(
                f"{found.repo} ({revision}) has changed its weights since results were made; "
                f"{pin}, or delete {record_path} to make them again."
            )
    entry = {**found._asdict(), "allow_identical_weights": allow_identical_weights}
    Path(revision_path).write_text(json.dumps(entry, indent=2) + "\n")
    log.info("%s (%s) is commit %s", found.repo, revision, found.commit)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    resolve_checkpoint(
        snakemake.output.revision,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
        record_path=snakemake.params.record,
        allow_identical_weights=snakemake.params.allow_identical_weights,
    )

"""Resolve a checkpoint or an adapter: its commit and the digests of its files."""

from typing import Any

from persistcal.models.hub import Revision, check_pinned, check_unchanged, resolve_revision
from persistcal.store.files import Digests
from persistcal.store.jobs import log, run


def resolve_checkpoint(
    *,
    repo: str,
    revision: str,
    record: str,
    allow_identical_weights: bool = False,
    beside_weights: dict[str, Any] | None = None,
    pins: dict[str, dict[str, str]] | None = None,
) -> Revision:
    """Return the record of `revision` of `repo`, without downloading weights.

    `record` is the record of the same checkpoint behind existing results, if any. `pins` has
    the commits that an earlier run resolved, by repository and revision. Checkpoints
    with the same weights can differ in `beside_weights`; of these settings an adapter, which is
    resolved, too, and a quantization change the weights.
    """
    digests, further = Digests.next_to(record), dict(beside_weights or {})
    checkpoint = resolve_revision(repo, revision, digests=digests)
    check_pinned(checkpoint, pins or {})
    changes: dict[str, Any] = {}
    if adapter := further.get("adapter"):
        changes["adapter"] = resolve_revision(**adapter, digests=digests).content()
    if kind := further.get("quantization"):
        changes["quantization"] = kind
    described = Revision(
        **{**checkpoint.content(), "changes": changes},
        allow_identical_weights=allow_identical_weights,
        beside_weights=further,
    )
    check_unchanged(described, record)
    commit = f"commit {checkpoint.commit}" if checkpoint.commit else "a local folder"
    log.info("%s (%s) is %s", repo, revision, commit)
    return described


if __name__ == "__main__":
    run(resolve_checkpoint, snakemake)

"""Fetch the files of a checkpoint into the Hub's cache, so that jobs need no connection."""

from persistcal.confidence.verbalised import digit_tokens
from persistcal.models import hub, load
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import Revision, check_siblings
from persistcal.store.jobs import Job, log, paths, run


def fetch_checkpoint(revision: Revision, *, dtype: str | None, job: Job) -> Checkpoint:
    """Download a checkpoint, unless it is in the cache, and return its record.

    Two checkpoints of a model with common weight files, and a tokenizer with a digit of several
    tokens, are refused before the download. `dtype` is the dtype of the computation; None
    means the device's default.
    """
    check_siblings(revision)
    [record] = paths(job.outputs["checkpoint"])
    checkpoint = revision.resolved(dtype=dtype, record=record)
    digit_tokens(load.load_tokenizer(hub.fetch_checked(checkpoint, weights=False)))
    folder = hub.fetch_checked(checkpoint)
    empty = load.build_empty(folder)  # refuses models that no job can load
    if checkpoint.adapter:
        load.check_adapter_fits(hub.fetch_checked(checkpoint.adapter), empty)
    load.check_rounding(empty, checkpoint.changes.get("quantization", ""), folder)
    log.info("%s (%s) is in %s", checkpoint.repo, checkpoint.revision, folder)
    return checkpoint


if __name__ == "__main__":
    run(fetch_checkpoint, snakemake)

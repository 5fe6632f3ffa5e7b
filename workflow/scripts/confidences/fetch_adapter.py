"""Fetch a LoRA adapter into the Hub's cache, so that jobs need no connection."""

from persistcal.models import hub
from persistcal.models.checkpoint import ADAPTER_CONFIG, Checkpoint, check_adapter_config
from persistcal.models.hub import Revision
from persistcal.store.files import DamagedFileError
from persistcal.store.jobs import Job, log, paths, run


def fetch_adapter(revision: Revision, *, job: Job) -> Checkpoint:
    """Download an adapter, unless it is in the cache, and return its record."""
    [record] = paths(job.outputs["adapter"])
    adapter = revision.resolved(dtype=None, record=record)
    if ADAPTER_CONFIG not in adapter.files:
        raise DamagedFileError(
            f"{adapter.repo} ({adapter.revision}) is a whole model and no adapter; give it as "
            "the verifier's model, without an adapter."
        )
    folder = hub.fetch_checked(adapter)
    base = check_adapter_config(folder).get("base_model_name_or_path")
    log.info("%s (%s), trained on %s, is in %s", adapter.repo, adapter.revision, base, folder)
    return adapter


if __name__ == "__main__":
    run(fetch_adapter, snakemake)

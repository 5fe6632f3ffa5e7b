"""Fetch a LoRA adapter into the Hub's cache, so that jobs need no connection."""

import dataclasses
import logging
from pathlib import Path

from persistcal.models import hub
from persistcal.models.checkpoint import Checkpoint, CheckpointError
from persistcal.models.checks import check_adapter_config, read_json
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def fetch_adapter(revision_path: str, adapter_path: str) -> None:
    """Download an adapter, unless it is in the cache, and write its record.

    Parameters
    ----------
    revision_path : str
        JSON by `resolve_checkpoint`.
    adapter_path : str
        JSON with repo, revision, commit, weights and files.
    """
    entry = read_json(Path(revision_path))
    del entry["allow_identical_weights"]
    adapter = dataclasses.replace(Checkpoint(**entry), record=Path(adapter_path))
    if "adapter_config.json" not in adapter.files:
        raise CheckpointError(
            f"{adapter.repo} ({adapter.revision}) is a whole model and no adapter; give it as "
            "the verifier's model, without an adapter."
        )
    folder = hub.fetch_checked(adapter)
    check_adapter_config(folder)
    base = read_json(folder / "adapter_config.json").get("base_model_name_or_path")
    adapter.write(adapter_path)
    log.info("%s (%s), trained on %s, is in %s", adapter.repo, adapter.revision, base, folder)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    fetch_adapter(snakemake.input.revision, snakemake.output.adapter)

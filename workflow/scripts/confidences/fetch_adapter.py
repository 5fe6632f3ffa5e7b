"""Fetch a LoRA adapter into the Hub's cache, so that jobs need no connection."""

import json
import logging
from pathlib import Path

from persistcal.logs import log_to
from persistcal.models import hub

log = logging.getLogger(__name__)


def fetch_adapter(adapter_path: str, *, repo: str, revision: str) -> None:
    """Download an adapter, unless it is in the cache, and write its record.

    Parameters
    ----------
    adapter_path : str
        JSON with repo, revision, commit and weights.
    repo : str
        Hub id, or a local folder with one sub-folder per revision.
    revision : str
        Branch, tag or commit, or the sub-folder's name.
    """
    found = hub.resolve_revision(repo, revision)
    folder = hub.fetch_files(found, [*hub.ADAPTER_FILES, *found.weights])
    if found.commit:
        hub.check_digests(folder, found.weights)
    base = json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    Path(adapter_path).write_text(json.dumps(found._asdict(), indent=2) + "\n")
    log.info("%s (%s), trained on %s, is in %s", found.repo, revision, base, folder)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    fetch_adapter(
        snakemake.output.adapter,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
    )

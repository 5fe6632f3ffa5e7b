"""Fetch the entailment model into the Hub's cache, so that jobs need no connection."""

import logging

from transformers import AutoConfig

from persistcal.answers.entailment import entailment_index
from persistcal.answers.equivalence_backends import MODEL_FILES
from persistcal.models import hub
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def fetch_entailment_model(model_path: str, *, repo: str, revision: str) -> None:
    """Download an entailment model, unless it is in the cache, and write its record.

    A model that does not say which of its classes is entailment is refused before
    its weights are downloaded.

    Parameters
    ----------
    model_path : str
        JSON with repo, revision, commit, weights and files.
    repo : str
        Hub id, or a local folder with one sub-folder per revision.
    revision : str
        Branch, tag or commit, or the sub-folder's name.
    """
    checkpoint = hub.resolve_revision(repo, revision, patterns=MODEL_FILES)
    folder = hub.fetch_small_checked(checkpoint)
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    entailment_index(config.id2label, f"{repo} ({revision})")
    folder = hub.fetch_checked(checkpoint)
    checkpoint.write(model_path)
    log.info("%s (%s) is in %s", repo, revision, folder)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    fetch_entailment_model(
        snakemake.output.model,
        repo=snakemake.params.repo,
        revision=snakemake.params.revision,
    )

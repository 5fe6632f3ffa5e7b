"""Fetch the entailment model into the Hub's cache, so that jobs need no connection."""

from transformers import AutoConfig

from persistcal.answers.entailment import entailment_index
from persistcal.answers.equivalence import MODEL_FILES
from persistcal.models import hub
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.jobs import log, run


def fetch_entailment_model(*, repo: str, revision: str) -> Checkpoint:
    """Download an entailment model, unless it is in the cache, and return its record.

    A model without a class for entailment is refused before its weights are downloaded. `repo`
    and `revision` are on the Hub, or a local folder with a sub-folder.
    """
    checkpoint = hub.resolve_revision(repo, revision, patterns=MODEL_FILES)
    config = AutoConfig.from_pretrained(
        hub.fetch_checked(checkpoint, weights=False), trust_remote_code=False
    )
    entailment_index(config.id2label, f"{repo} ({revision})")
    log.info("%s (%s) is in %s", repo, revision, hub.fetch_checked(checkpoint))
    return checkpoint


if __name__ == "__main__":
    run(fetch_entailment_model, snakemake)

"""Merge the shards of beams into the file that a single job would write."""

from persistcal.models.batches import in_order
from persistcal.store import artifacts
from persistcal.store.artifacts import Beams, Questions
from persistcal.store.jobs import run


def merge_beams(questions: Questions, shards: Beams) -> Beams:
    """Return the beams of all shards, questions in their order."""
    ids = questions.sort_values("index")["question_id"]
    return in_order(shards, artifacts.BEAMS, ids.tolist())


if __name__ == "__main__":
    run(merge_beams, snakemake)

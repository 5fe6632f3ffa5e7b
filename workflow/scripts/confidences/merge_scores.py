"""Merge the shards of scores into the file that a single job would write."""

from persistcal.models.batches import in_order
from persistcal.store import artifacts
from persistcal.store.artifacts import Questions, Scores
from persistcal.store.jobs import run


def merge_scores(questions: Questions, shards: Scores) -> Scores:
    """Return the scores of all shards, questions in their order."""
    ids = questions.sort_values("index")["question_id"]
    return in_order(shards, artifacts.SCORES, ids.tolist())


if __name__ == "__main__":
    run(merge_scores, snakemake)

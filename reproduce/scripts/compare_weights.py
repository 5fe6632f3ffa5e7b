"""Compare the weights of all checkpoints of one model."""

from contextlib import ExitStack
from pathlib import Path

from safetensors import safe_open

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked
from persistcal.store.artifacts import WeightSimilarities
from persistcal.store.jobs import log, run
from reproduce.weights import stored_weights, weight_similarities


def compare_weights(records: list[Checkpoint]) -> WeightSimilarities:
    """Return the cosine similarity of each pair of checkpoints, in order of training."""
    with ExitStack() as stack:
        weights = {}
        for checkpoint in records:
            folder = fetch_checked(checkpoint)
            weights[checkpoint.name] = stored_weights(
                stack.enter_context(safe_open(str(Path(folder, file)), framework="pt"))
                for file in checkpoint.weights
            )
        rows = weight_similarities(weights)
    log.info("Cosines from %.3f to %.3f", rows["cosine"].min(), rows["cosine"].max())
    return rows


if __name__ == "__main__":
    run(compare_weights, snakemake)

"""Compare the weights of all checkpoints of one model."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from safetensors import safe_open

from persistcal import artifacts
from persistcal.analyses.weights import stored_weights, weight_similarities
from persistcal.logs import log_to
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked

log = logging.getLogger(__name__)


def compare_weights(
    checkpoint_paths: Sequence[str],
    similarities_path: str,
    *,
    model: str,
    checkpoints: Sequence[str],
    threads: int,
) -> None:
    """Write the cosine similarity of each pair of checkpoints to `similarities_path`.

    Parameters
    ----------
    checkpoint_paths : sequence of str
        Record of each of `checkpoints`.
    similarities_path : str
        CSV of `persistcal.artifacts.WEIGHT_SIMILARITIES`.
    model : str
        Name of the model.
    checkpoints : sequence of str
        In order of training.
    threads : int
        Of torch.
    """
    load.set_threads(threads)
    with ExitStack() as stack:
        weights = {}
        for name, path in zip(checkpoints, checkpoint_paths, strict=True):
            checkpoint = Checkpoint.read(path)
            folder = fetch_checked(checkpoint)
            weights[name] = stored_weights(
                stack.enter_context(safe_open(folder / file, framework="pt"))
                for file in checkpoint.weights
            )
        rows = weight_similarities(weights)
    artifacts.write_csv(
        rows.assign(model=model), similarities_path, artifacts.WEIGHT_SIMILARITIES
    )
    log.info(
        "Cosines of %s from %.3f to %.3f", model, rows["cosine"].min(), rows["cosine"].max()
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compare_weights(
        snakemake.input.checkpoints,
        snakemake.output.similarities,
        model=snakemake.wildcards.model,
        checkpoints=snakemake.params.checkpoints,
        threads=snakemake.threads,
    )

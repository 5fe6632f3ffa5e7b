"""Confidence that knows only how late a checkpoint is: i / (m - 1) at the i-th of m."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def estimate_end_correct(
    clusters_paths: Sequence[str], confidences_path: str, *, checkpoints: Sequence[str]
) -> None:
    """Write the end-correct baseline, 0 at the first checkpoint and 1 at the last.

    Parameters
    ----------
    clusters_paths : sequence of str
        Tables CLUSTERS of the evaluation `checkpoints`, in order.
    confidences_path : str
        Table CONFIDENCES.
    checkpoints : sequence of str
        At least two.

    Notes
    -----
    Paper, section 3.1, "End-correct Baseline".
    """
    dataset = Path(confidences_path).parent.name
    parts = [
        artifacts.read(path, artifacts.CLUSTERS)[["question_id"]]
        .drop_duplicates()
        .assign(checkpoint=checkpoint, train_dataset=dataset, seed=0, confidence=confidence)
        for checkpoint, path, confidence in zip(
            checkpoints, clusters_paths, np.linspace(0, 1, len(checkpoints)), strict=True
        )
    ]
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_end_correct(
        snakemake.input.clusters,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
    )

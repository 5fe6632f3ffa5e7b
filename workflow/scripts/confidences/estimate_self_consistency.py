"""Confidence of an answer: the share of the beams' probability that means the same."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def estimate_self_consistency(
    clusters_paths: Sequence[str], confidences_path: str, *, checkpoints: Sequence[str]
) -> None:
    """Write the probability of the top cluster of each question.

    Parameters
    ----------
    clusters_paths : sequence of str
        Tables CLUSTERS of the evaluation `checkpoints`.
    confidences_path : str
        Table CONFIDENCES.
    checkpoints : sequence of str
        Names that belong to `clusters_paths`.

    Notes
    -----
    Paper, section 3.1, and appendix "Self-Consistency Implementation".
    """
    dataset = Path(confidences_path).parent.name
    parts = []
    for checkpoint, path in zip(checkpoints, clusters_paths, strict=True):
        clusters = artifacts.read(path, artifacts.CLUSTERS)
        top = clusters.loc[clusters["cluster"] == 0, ["question_id", "probability"]]
        # Summed floats may pass 1 by a rounding error.
        top = top.assign(confidence=top["probability"].clip(upper=1))
        parts.append(top.assign(checkpoint=checkpoint, train_dataset=dataset, seed=0))
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_self_consistency(
        snakemake.input.clusters,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
    )

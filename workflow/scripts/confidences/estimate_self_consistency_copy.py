"""Confidence of an answer: the last earlier checkpoint's in its own, whatever it is."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def estimate_self_consistency_copy(
    clusters_paths: Sequence[str],
    confidences_path: str,
    *,
    checkpoints: Sequence[str],
    earlier: Sequence[str],
    evaluation: Sequence[str],
) -> None:
    """Write the last earlier checkpoint's self-consistency for every later checkpoint.

    Parameters
    ----------
    clusters_paths : sequence of str
        Tables CLUSTERS of `checkpoints`.
    confidences_path : str
        Table CONFIDENCES: a row for each prediction of an evaluation checkpoint, 0
        where the last earlier one has no answer.
    checkpoints : sequence of str
        Names that belong to `clusters_paths`.
    earlier, evaluation : sequence of str
        The last of the first is copied to each of the others.
    """
    paths = dict(zip(checkpoints, clusters_paths, strict=True))
    copied = _top_clusters(paths[earlier[-1]]).set_index("question_id")["probability"]
    dataset = Path(confidences_path).parent.name
    parts = []
    for checkpoint in evaluation:
        top = _top_clusters(paths[checkpoint])
        # Summed floats may pass 1 by a rounding error.
        confidence = top["question_id"].map(copied).fillna(0.0).clip(upper=1)
        parts.append(
            top.assign(
                checkpoint=checkpoint, train_dataset=dataset, seed=0, confidence=confidence
            )
        )
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


def _top_clusters(path: str) -> pd.DataFrame:
    clusters = artifacts.read(path, artifacts.CLUSTERS)
    return clusters[clusters["cluster"] == 0]


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_self_consistency_copy(
        snakemake.input.clusters,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
        earlier=snakemake.params.earlier,
        evaluation=snakemake.params.evaluation,
    )

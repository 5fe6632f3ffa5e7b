"""Confidence of an answer: the probability of its best beam as a sequence of tokens."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to


def estimate_sequence_probability(
    beams_paths: Sequence[str],
    clusters_paths: Sequence[str],
    confidences_path: str,
    *,
    checkpoints: Sequence[str],
) -> None:
    """Write the probability of the best beam that says what the prediction says.

    Parameters
    ----------
    beams_paths, clusters_paths : sequence of str
        Tables BEAMS and CLUSTERS of the evaluation `checkpoints`.
    confidences_path : str
        Table CONFIDENCES.
    checkpoints : sequence of str
        Names that belong to the paths.
    """
    dataset = Path(confidences_path).parent.name
    parts = []
    paths = zip(checkpoints, beams_paths, clusters_paths, strict=True)
    for checkpoint, beams_path, clusters_path in paths:
        beams = artifacts.read(beams_path, artifacts.BEAMS)
        beams["answer"] = beams["text"].str.strip()
        best = beams.groupby(["question_id", "answer"], as_index=False)["logprob"].max()
        clusters = artifacts.read(clusters_path, artifacts.CLUSTERS)
        top = clusters.loc[clusters["cluster"] == 0, ["question_id", "answer"]]
        top = top.merge(best, validate="one_to_one")
        # Summed log-probabilities may pass 0 by a rounding error.
        top = top.assign(confidence=np.exp(top["logprob"]).clip(upper=1))
        parts.append(top.assign(checkpoint=checkpoint, train_dataset=dataset, seed=0))
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_sequence_probability(
        snakemake.input.beams,
        snakemake.input.clusters,
        snakemake.output.confidences,
        checkpoints=snakemake.params.checkpoints,
    )

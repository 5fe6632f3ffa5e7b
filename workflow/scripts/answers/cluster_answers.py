"""Group the beams of each question by meaning and give each group its probability."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.answers import clusters
from persistcal.answers.equivalence_backends import open_equivalence
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def cluster_answers(
    questions_path: str,
    beams_path: str,
    clusters_path: str,
    model_path: str = "",
    *,
    equivalence: Mapping[str, Any],
    weighting: str,
    threads: int = 1,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the clusters of the beams at `beams_path` to `clusters_path`.

    Parameters
    ----------
    questions_path, beams_path : str
        Tables QUESTIONS and BEAMS.
    clusters_path : str
        Table CLUSTERS, a question's clusters by probability.
    model_path, equivalence, threads : str, mapping, int
        See `persistcal.answers.equivalence_backends.open_equivalence`.
    weighting : {"softmax", "probability", "equal"}
        Weight of a beam, see `persistcal.answers.clusters.beam_weights`.
    about : mapping of str to str, optional
        Whose answers they are.
    """
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    texts = dict(zip(questions["question_id"], questions["question"], strict=True))
    beams = artifacts.read(beams_path, artifacts.BEAMS)
    answered = {
        question_id: clusters.Beams(
            texts[question_id], group["text"].tolist(), group["logprob"].tolist()
        )
        for question_id, group in beams.groupby("question_id", sort=False)
    }
    with open_equivalence(
        equivalence,
        model_path,
        Path(clusters_path).stem,
        questions=texts.values(),
        answers=beams["text"].str.strip(),
        threads=threads,
    ) as equivalent:
        clustered = clusters.cluster_answers(
            list(answered.values()), equivalent, weighting=weighting
        )
    rows = [
        (question_id, number, *cluster)
        for question_id, candidates in zip(answered, clustered, strict=True)
        for number, cluster in enumerate(candidates)
    ]
    table = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
    artifacts.write(table, clusters_path, artifacts.CLUSTERS, about=about)
    log.info("%d clusters of %d questions", len(table), len(answered))
    if n_empty := clustered.count([]):
        log.warning("%d questions have no answer in any beam", n_empty)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    cluster_answers(
        snakemake.input.questions,
        snakemake.input.beams,
        snakemake.output.clusters,
        snakemake.input.get("entailment_model", ""),
        equivalence=snakemake.params.equivalence,
        weighting=snakemake.params.weighting,
        threads=snakemake.threads,
        about=dict(snakemake.wildcards.items()),
    )

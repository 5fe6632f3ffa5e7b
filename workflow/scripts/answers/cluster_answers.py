"""Group the beams of each question by meaning and give each group its probability."""

from typing import Any

from persistcal.answers.clusters import cluster_table, open_equivalence
from persistcal.answers.options import has_options, option_clusters
from persistcal.store.artifacts import Beams, Clusters, Questions
from persistcal.store.jobs import run


def cluster_answers(
    questions: Questions,
    beams: Beams,
    entailment_model: str = "",
    *,
    equivalence: dict[str, Any],
    weighting: str,
    normalisation: str,
    dataset: str,
    threads: int,
) -> Clusters:
    """Return the clusters of each question's beams, by probability.

    `weighting` is of beams, see `beam_weights`; `normalisation` of options of multiple choice,
    which nothing groups, see `normalised`; the others go to `open_equivalence`.
    """
    if has_options(questions):
        return option_clusters(beams, normalisation)
    with open_equivalence(
        equivalence,
        entailment_model,
        dataset,
        questions=questions["question"],
        answers=beams["text"].str.strip(),
        threads=threads,
    ) as equivalent:
        return cluster_table(questions, beams, equivalent, weighting=weighting)


if __name__ == "__main__":
    run(cluster_answers, snakemake)

"""Count the questions with a different correctness at two checkpoints."""

import pandas as pd

from persistcal.evaluation.contrast import Pairs, arrange_answers, contrast_sets, describe_sets
from persistcal.judge.run import count_same_answers
from persistcal.store.artifacts import Answers, Clusters, ContrastSets
from persistcal.store.jobs import log, run


def count_contrast_sets(
    answers: Answers,
    clusters: Clusters,
    *,
    checkpoints: list[str],
    min_contrast: int,
    pairs: Pairs,
) -> ContrastSets:
    """Return the contrast sets of `checkpoints`, from their answers to the test questions.

    Without `clusters` it is unknown which of the answers are the same.
    """
    asked = answers[answers["split"] == "test"]
    correct, _ = arrange_answers({c: asked[asked["checkpoint"] == c] for c in checkpoints})
    counted = contrast_sets(correct, checkpoints, min_contrast=min_contrast, pairs=pairs)
    sets = describe_sets(counted, checkpoints)
    log.info("%d contrast sets, %d of them kept", len(sets), sets["kept"].sum())
    same = count_same_answers(sets, asked, clusters)
    return sets.assign(same_answers=pd.array(same, "Int64"))


if __name__ == "__main__":
    run(count_contrast_sets, snakemake)

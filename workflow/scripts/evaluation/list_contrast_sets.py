"""List the questions with a different correctness at two checkpoints, and count them."""

import pandas as pd

from persistcal.evaluation.aligned import list_sets
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.judge.accuracy import count_same_answers
from persistcal.store.artifacts import Answers, Clusters, ContrastMembers, ContrastQuestions
from persistcal.store.jobs import log, run


def list_contrast_sets(
    answers: Answers,
    clusters: Clusters,
    *,
    checkpoints: list[str],
    settings: EvaluationSettings,
) -> tuple[ContrastQuestions, ContrastMembers]:
    """Return the contrast sets of `checkpoints`, from their answers to the test questions.

    Without `clusters` it is unknown which of the answers are the same.
    """
    asked = answers[answers["split"] == "test"]
    members, questions = list_sets(asked, checkpoints, settings)
    log.info("%d contrast sets, %d of them kept", len(members), members["kept"].sum())
    same = count_same_answers(members, asked, clusters)
    return questions, members.assign(same_answers=pd.array(same, "Int64"))


if __name__ == "__main__":
    run(list_contrast_sets, snakemake)

"""Label each candidate answer: by a match against the references, or by a judge model."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from persistcal.judge.prompt import JudgeSettings, candidate_of
from persistcal.judge.run import Asked, judge_candidates, label_answers, lexical_labels
from persistcal.questions.question_list import true_at
from persistcal.store.artifacts import Answers, Clusters, GivenLabels, Labels, Questions
from persistcal.store.jobs import run


def judge_answers(
    questions: Questions,
    clusters: Clusters,
    given: GivenLabels,
    *,
    judged_clusters: int | None,
    judge: Mapping[str, Any],
    reached: Mapping[str, Any],
    folder: str,
    noted: str,
) -> tuple[Labels, Answers]:
    """Return the labels of the candidate answers, and the predictions with their labels.

    The judge labels at most the `judged_clusters` most probable clusters of a question, without
    those with `given` labels. `judge` contains the settings that determine a label, with the
    prompt's text, and `reached` the settings of the connection. `folder` contains the replies
    for all jobs, and `noted` this job's questions to a person.
    """
    if judged_clusters is not None:
        clusters = clusters[clusters["cluster"] < judged_clusters]
    questions = true_at(questions, next(iter(clusters.get("checkpoint", ())), ""))
    asking = JudgeSettings(**{**reached, **judge}) if judge else None

    def ask(rows: Sequence[Asked]) -> Sequence[tuple[str, str]]:
        if asking is None or not rows:
            return lexical_labels(rows)
        key = os.environ.get(asking.api_key_env, "")
        candidates = [candidate_of(*row) for row in rows]
        return judge_candidates(candidates, folder, asking, noted=noted, api_key=key)

    return label_answers(questions, clusters, given, ask)


if __name__ == "__main__":
    run(judge_answers, snakemake)

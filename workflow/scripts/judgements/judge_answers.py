"""Label each candidate answer: by a match against the references, or by a judge model."""

from typing import Any

from persistcal.judge.backends import BACKENDS
from persistcal.judge.run import label_answers
from persistcal.questions.question_list import true_at
from persistcal.store.artifacts import Answers, Clusters, GivenLabels, Labels, Questions
from persistcal.store.jobs import run


def judge_answers(
    questions: Questions,
    clusters: Clusters,
    given: GivenLabels,
    *,
    judged_clusters: int | None,
    judge: dict[str, Any],
    reached: dict[str, Any],
    folder: str,
    noted: str,
) -> tuple[Labels, Answers]:
    """Return the labels of the candidate answers, and the predictions with their labels.

    The judge labels at most the `judged_clusters` most probable clusters of a question, without
    those with `given` labels. `judge` contains the settings that determine a label, with the
    prompt's text, and `reached` all settings of the back end. `folder` contains the replies
    for all jobs, and `noted` this job's questions to a person.
    """
    if judged_clusters is not None:
        clusters = clusters[clusters["cluster"] < judged_clusters]
    questions = true_at(questions, next(iter(clusters.get("checkpoint", ())), ""))
    settings = {**reached, **judge}
    backend = BACKENDS[settings["backend"]](settings, folder, noted)
    return label_answers(questions, clusters, given, backend.label)


if __name__ == "__main__":
    run(judge_answers, snakemake)

"""Measure estimators on parts of the questions: by answers, margin, training and category."""

from collections.abc import Collection

import pandas as pd

from persistcal.confidence.confounds import count_references, rate_answers
from persistcal.evaluation.aligned import align
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.subsets import margins, metrics_of_subsets
from persistcal.judge.accuracy import same_answers
from persistcal.questions.labels import normalise_answer
from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def measure_subsets(
    predictions: artifacts.Predictions,
    contrast_sets: artifacts.ContrastMembers,
    clusters: artifacts.Clusters,
    questions: artifacts.Questions,
    *,
    dataset: str,
    checkpoints: list[str],
    settings: EvaluationSettings,
    by_category: bool = False,
) -> artifacts.Subsets:
    """Return the metrics of one model on groups of the questions of one dataset.

    `questions` belong to this dataset and to its training datasets. With `by_category` each
    category of questions is a group.
    """
    if predictions.empty:
        log.warning("There are no predictions, so nothing to measure")
        return artifacts.empty(artifacts.SUBSETS)
    given = questions[~questions["excluded"]]
    trained = given[given["split"] == "train"]
    asked = given[(given["split"] == "test") & (given["dataset"] == dataset)]
    references = count_references(trained["references"])
    by_question = {}
    if not trained.empty:
        by_question["reference answer"] = _shared(asked, references)
    if by_category:
        named = asked["category"].replace("", "(none)")
        by_question["category"] = dict(zip(asked["question_id"], named, strict=True))
    texts = clusters[clusters["cluster"] == 0]
    rated = rate_answers(texts, references)
    return metrics_of_subsets(
        align(predictions, checkpoints, settings, members=contrast_sets),
        margin={c: margins(clusters[clusters["checkpoint"] == c]) for c in checkpoints},
        by_question=by_question,
        rated=pd.concat([texts[["checkpoint", "question_id"]], rated], axis=1),
        same_answers=same_answers(clusters),
    )


def _shared(asked: pd.DataFrame, references: Collection[str]) -> dict[str, str]:
    """Return whether a training question shares a reference answer with each question."""
    normalised = asked["references"].map(lambda texts: set(map(normalise_answer, texts)))
    shared = [not texts.isdisjoint(references) for texts in normalised]
    log.info("%d of %d test questions share a reference answer", sum(shared), len(asked))
    named = ["in training" if is_shared else "not in training" for is_shared in shared]
    return dict(zip(asked["question_id"], named, strict=True))


if __name__ == "__main__":
    run(measure_subsets, snakemake)

"""Label each candidate answer: by a match against the references, or by a judge model."""

import logging
import os
from collections.abc import Mapping

import pandas as pd

from persistcal.answers.equivalence import normalise
from persistcal.answers.predictions import (
    label_predictions,
    take_predictions,
    warn_if_none_is_correct,
)
from persistcal.judge.labels import judge_lexically
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def judge_answers(
    questions_path: str,
    clusters_path: str,
    labels_path: str,
    answers_path: str,
    given_path: str = "",
    *,
    judged_clusters: int | None = None,
    judge: dict | None = None,
    folder: str = "",
    noted: str = "",
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the labels of the candidate answers, and the predictions with theirs.

    Parameters
    ----------
    questions_path, clusters_path : str
        Tables QUESTIONS and CLUSTERS of `persistcal.store.artifacts`.
    labels_path : str
        Table `persistcal.store.artifacts.LABELS`, one row per judged cluster.
    answers_path : str
        Table `persistcal.store.artifacts.ANSWERS` of the train and the test split.
    given_path : str, optional
        Table GIVEN_LABELS: of these answers the judge is not asked.
    judged_clusters : int, optional
        Judge so many of the most probable clusters of each question; all by default.
    judge : dict, optional
        The section of the config, with the prompt's text; lexical match by default.
    folder, noted : str
        A judge model's replies for all jobs, and what this job asked a person.
    about : mapping of str to str, optional
        Whose answers they are.
    """
    table = artifacts.read(questions_path, artifacts.QUESTIONS)
    questions = table.set_index("question_id")
    clusters = artifacts.read(clusters_path, artifacts.CLUSTERS)
    if judged_clusters is not None:
        clusters = clusters[clusters["cluster"] < judged_clusters]
    asked = questions.loc[clusters["question_id"], ["question", "references"]]
    rows = list(zip(asked["question"], asked["references"], clusters["answer"], strict=True))
    given = given_labels(clusters, given_path)
    asked_of_judge = [row for row, label in zip(rows, given, strict=True) if label is None]
    if judge and asked_of_judge:
        replies = iter(ask_judge(asked_of_judge, judge, folder, noted))
    else:
        replies = iter((judge_lexically(a, right), "lexical") for _, right, a in asked_of_judge)
    judged = [(label, "given") if label else next(replies) for label in given]
    labels = clusters[["question_id", "cluster"]].assign(
        label=[label for label, _ in judged], source=[source for _, source in judged]
    )
    artifacts.write(labels, labels_path, artifacts.LABELS, about=about)
    predictions = pd.concat(
        take_predictions(table, clusters, split=split).assign(split=split)
        for split in ("train", "test")
    )
    answers = label_predictions(predictions, labels)[artifacts.ANSWERS.schema.names]
    artifacts.write(answers, answers_path, artifacts.ANSWERS, about=about)
    log.info("Labels: %s", labels["label"].value_counts().to_dict())
    warn_if_none_is_correct(answers["correct"], "answers")


def given_labels(clusters: pd.DataFrame, path: str) -> list[str | None]:
    """Return the label that each cluster's answer came with, None where it has none."""
    if not path:
        return [None] * len(clusters)
    given = artifacts.read(path, artifacts.GIVEN_LABELS)
    keys = zip(given["question_id"], given["answer"], strict=True)
    labels = dict(zip(keys, given["label"], strict=True))
    answers = zip(clusters["question_id"], map(normalise, clusters["answer"]), strict=True)
    return [labels.get(key) for key in answers]


def ask_judge(rows: list[tuple], judge: dict, folder: str, noted: str) -> list[tuple[str, str]]:
    """Return label and source of each (question, references, answer) of `rows`."""
    from persistcal.judge.prompt import candidate_of
    from persistcal.judge.run import judge_candidates
    from persistcal.judge.settings import JudgeSettings

    settings = JudgeSettings(**{key: judge[key] for key in judge if key != "clusters"})
    key = os.environ.get(settings.api_key_env, "")
    candidates = [candidate_of(*row) for row in rows]
    return judge_candidates(candidates, folder, settings, noted=noted, api_key=key)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    decides = snakemake.params.judge  # what decides a label; the rest must rerun nothing
    judge_answers(
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.output.labels,
        snakemake.output.answers,
        snakemake.input.get("given", ""),
        judged_clusters=snakemake.params.judged_clusters,
        judge={**snakemake.config["judge"], **decides} if decides else None,
        folder=snakemake.params.folder,
        noted=snakemake.params.noted,
        about=dict(snakemake.wildcards.items()),
    )

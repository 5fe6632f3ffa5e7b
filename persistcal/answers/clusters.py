"""Groups of answers with the same meaning, the predictions, their labels and confidences."""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.answers.equivalence import (
    FORMS,
    MutualEntailment,
    PairTest,
    group_answers,
    identical,
    nothing,
)
from persistcal.questions.labels import CORRECT, normalise, normalise_answer
from persistcal.questions.splits import split_of_questions
from persistcal.store import artifacts

log = logging.getLogger(__name__)

LEAST_LONGER, SHARE_LONGER = 5, 0.1  # longer answers of a checkpoint that are named
RUN = ["train_dataset", "seed"]  # an estimator's adapters, apart
RATED = ["checkpoint", "question_id", *RUN, "confidence"]


@contextlib.contextmanager
def open_equivalence(
    settings: Mapping[str, Any],
    model_path: str,
    dataset: str,
    *,
    questions: Iterable[str],
    answers: Iterable[str],
    threads: int,
) -> Iterator[PairTest]:
    """Yield the equivalence that the config's section describes.

    `model_path` is the record of the entailment model; its answers about `dataset` are stored
    next to it. Only `questions` and `answers` can be compared. "lexical" and "identical" ignore
    all of these.
    """
    if settings["backend"] == "lexical":
        yield identical
        return
    if settings["backend"] == "identical":
        yield MutualEntailment(nothing, FORMS["released"])
        return
    # Torch and the Hub are not needed above.
    import torch

    from persistcal.answers.entailment import open_cache

    torch.set_num_threads(threads)
    opened = settings, model_path, dataset
    with open_cache(*opened, questions=questions, answers=answers) as entails:
        yield MutualEntailment(entails, FORMS[settings.get("form", "numbers")])


class QuestionBeams(NamedTuple):
    """Beams of a question; white space around the texts does not count."""

    question: str
    texts: Sequence[str]
    logprobs: Sequence[float]


class Cluster(NamedTuple):
    """One candidate answer: equivalent beams and their summed weight, in [0, 1].

    The answer is the text of the best beam; members are distinct texts, best beam first.
    """

    answer: str
    probability: float
    members: list[str]


def beam_weights(logprobs: Sequence[float], *, weighting: str) -> np.ndarray:
    """Weight of each beam of one question, by their summed log-probabilities.

    The weighting "softmax" normalises over the beams, like the published numbers;
    "probability" is the sequence probability, as in the paper's text (appendix,
    Self-Consistency Implementation), with a sum of at most 1; "equal" is for samples, because
    their frequency reflects their probability.

    >>> beam_weights(np.log([0.6, 0.2]), weighting="softmax").round(3).tolist()
    [0.75, 0.25]
    """
    scores = np.asarray(logprobs, dtype=float)
    if weighting == "probability":
        return np.exp(scores)
    if weighting == "softmax":
        weights = np.exp(scores - scores.max())
        return weights / weights.sum()
    if weighting == "equal":
        return np.full(len(scores), 1 / len(scores))
    raise ValueError(
        f"Unknown weighting {weighting!r}: choose 'softmax', 'probability' or 'equal'."
    )


def cluster_answers(
    answered: Sequence[QuestionBeams], equivalent: PairTest, *, weighting: str = "softmax"
) -> list[list[Cluster]]:
    """Group the beams of each question by meaning, see `beam_weights` for the weighting.

    Clusters are the connected components of `equivalent`, which is symmetric and is asked
    about many questions at a time. Two answers can share a cluster through a third one. Beams
    without an answer belong to no cluster but keep their share of the probability.

    The clusters of a question are in descending order of probability. If two are equal, the
    cluster with the better beam, or with the first drawn sample, is first.

    Paper, appendix "Self-Consistency Implementation", after Kuhn, Gal and
    Farquhar, "Semantic Uncertainty", ICLR 2023.

    >>> texts, weights = ["Paris", "paris.", "Lyon", ""], [0.4, 0.3, 0.2, 0.1]
    >>> [clusters] = cluster_answers([QuestionBeams("?", texts, np.log(weights))], identical)
    >>> [(cluster.answer, round(cluster.probability, 3)) for cluster in clusters]
    [('Paris', 0.7), ('Lyon', 0.2)]
    """
    ranked = [_rank(beams, weighting) for beams in answered]
    distinct = [list(dict.fromkeys(beam.text for beam in beams)) for beams in ranked]
    texts_of = [
        (beams.question, texts) for beams, texts in zip(answered, distinct, strict=True)
    ]
    return [
        _gather(beams, dict(zip(texts, groups, strict=True)))
        for beams, texts, groups in zip(
            ranked, distinct, group_answers(texts_of, equivalent), strict=True
        )
    ]


def cluster_table(
    questions: pd.DataFrame, beams: pd.DataFrame, equivalent: PairTest, *, weighting: str
) -> pd.DataFrame:
    """Return the table CLUSTERS of tables QUESTIONS and BEAMS, see `cluster_answers`."""
    texts = questions.set_index("question_id")["question"]
    answered = {
        question_id: QuestionBeams(
            texts[question_id], group["text"].tolist(), group["logprob"].tolist()
        )
        for question_id, group in beams.groupby("question_id", sort=False)
    }
    clustered = cluster_answers(list(answered.values()), equivalent, weighting=weighting)
    rows = [
        (question_id, number, *cluster)
        for question_id, candidates in zip(answered, clustered, strict=True)
        for number, cluster in enumerate(candidates)
    ]
    table = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
    log.info("%d clusters of %d questions", len(table), len(answered))
    if n_empty := clustered.count([]):
        log.warning("%d questions have no answer in any beam", n_empty)
    return table


class Ranked(NamedTuple):
    """The text of a beam or sample, its weight and its place: by score, or in drawing order."""

    text: str
    weight: float
    place: int


def _rank(beams: QuestionBeams, weighting: str) -> list[Ranked]:
    """Rank answers, best beam first; empty ones are left out.

    Log-probabilities of samples need not be known: their most frequent text is first.
    """
    weights = beam_weights(beams.logprobs, weighting=weighting)
    texts = [text.strip() for text in beams.texts]
    scores, drawn = np.asarray(beams.logprobs, dtype=float), weighting == "equal"
    if drawn:
        counts = Counter(texts)
        scores = np.array([counts[text] for text in texts], dtype=float)
    order = np.argsort(-scores, kind="stable").tolist()
    return [
        Ranked(texts[beam], float(weights[beam]), beam if drawn else place)
        for place, beam in enumerate(order)
        if normalise(texts[beam])
    ]


def _gather(beams: list[Ranked], group_of: dict[str, int]) -> list[Cluster]:
    """Return the clusters by probability, and equal ones by first position.

    The spelling of samples changes the order of texts within a cluster, not of clusters.
    """
    groups: dict[int, list[Ranked]] = {}
    for beam in beams:
        groups.setdefault(group_of[beam.text], []).append(beam)
    ranked = []
    for members in groups.values():
        texts = list(dict.fromkeys(beam.text for beam in members))
        cluster = Cluster(texts[0], sum(beam.weight for beam in members), texts)
        ranked.append((-cluster.probability, min(beam.place for beam in members), cluster))
    return [cluster for _, _, cluster in sorted(ranked)]


def take_predictions(
    questions: pd.DataFrame, clusters: pd.DataFrame, *, split: str = "test"
) -> pd.DataFrame:
    """Return the first cluster of each question of a split that has one and is not excluded."""
    mask = (questions["split"] == split_of_questions(split)) & ~questions["excluded"]
    rows = questions.loc[mask, ["question_id", "question"]]
    first = clusters.loc[clusters["cluster"] == 0, ["question_id", "answer", "probability"]]
    return rows.merge(first, on="question_id", validate="one_to_one")


def take_answers(questions: pd.DataFrame, clusters: pd.DataFrame) -> pd.DataFrame:
    """Return `take_predictions` of all splits that are answered."""
    splits = [take_predictions(questions, clusters, split=name) for name in ("train", "test")]
    return pd.concat(splits, ignore_index=True)


def label_predictions(predictions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Add whether each prediction is correct, and drop predictions without a label.

    The label not_attempted counts as incorrect. `labels` is a table LABELS.
    """
    first = labels.loc[labels["cluster"] == 0, ["question_id", "label"]]
    joined = predictions.merge(first, on="question_id", validate="one_to_one")
    return joined.assign(correct=joined["label"] == CORRECT).drop(columns="label")


def warn_if_none_is_correct(correct: pd.Series, name: str) -> None:
    """Log a warning where there are labels of `name` and none is that an answer is correct."""
    if len(correct) and not correct.any():
        log.warning(
            "None of %d %s is correct; see whether answers and references have the same form",
            len(correct),
            name,
        )


def doubts_of_form(
    references: pd.Series, clusters: pd.DataFrame, labels: pd.DataFrame
) -> Iterator[str]:
    """Yield a sentence if many answers contain a reference, but do not match it."""
    key = ["question_id", "cluster"]
    of_best = clusters[clusters["cluster"] == 0]
    first = of_best.merge(labels[[*key, "label", "source"]], on=key)
    wrong = first[first["label"].ne(CORRECT) & first["source"].isin(["lexical", "exact_match"])]
    longer = [
        (answer, reference)
        for question, answer in zip(wrong["question_id"], wrong["answer"], strict=True)
        for reference in references[question]
        if f" {normalise_answer(reference)} " in f" {normalise_answer(answer)} "
    ]
    if len(longer) >= max(LEAST_LONGER, SHARE_LONGER * len(first)):
        place = first.filter(["model", "checkpoint", "dataset"]).iloc[0]
        answer, reference = longer[0]
        yield (
            f"{', '.join(place) or 'Labels'}: {len(longer)} of {len(first)} answers contain a "
            f"reference without being equal to it (such as {answer!r} for {reference!r}) and "
            "count as wrong; shorten answers to the form of the references, or have them "
            "judged."
        )


def join_predictions(
    answers: pd.DataFrame, confidences: pd.DataFrame, estimator: str, *, copies: bool = False
) -> pd.DataFrame:
    """Return the table PREDICTIONS: every answer with the confidences `RATED` of `estimator`.

    `copies` are confidences of another checkpoint in its own answers, 0 for questions without
    an answer. Other estimators must rate every answer.
    """
    runs = confidences[["checkpoint", *RUN]].drop_duplicates()
    wanted = answers[["checkpoint", "question_id", "correct"]].merge(runs, on="checkpoint")
    joined = wanted.merge(confidences, how="left", validate="one_to_one")
    empty = joined["confidence"].isna()
    unrated = answers[~answers["checkpoint"].isin(runs["checkpoint"])]
    if len(lost := pd.concat([joined[empty & (not copies)], unrated])):
        row = lost.iloc[0]
        raise ValueError(
            f"Estimator {estimator!r} has no confidence for question {row['question_id']!r} at "
            f"checkpoint {row['checkpoint']!r} ({len(lost)} such answers); it must rate "
            "every test question that has an answer."
        )
    joined.loc[empty, "confidence"] = 0.0
    return joined.assign(estimator=estimator)[artifacts.PREDICTIONS.but("ask", "group")]


def with_groups(answers: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return ANSWERS or PREDICTIONS with the group of each question."""
    groups = dict(zip(questions["question_id"], questions["group"], strict=True))
    return answers.assign(group=answers["question_id"].map(groups))

"""Group beams into candidate answers and give each its probability."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.answers.equivalence import PairTest, group_answers, normalise
from persistcal.store import artifacts

log = logging.getLogger(__name__)


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

    Parameters
    ----------
    weighting : {"softmax", "probability", "equal"}
        "softmax" normalises over the beams, as the published numbers do;
        "probability" is the sequence probability itself, as the paper's prose
        says (appendix, Self-Consistency Implementation); "equal" is for samples,
        which are as frequent as they are probable.

    Returns
    -------
    ndarray of shape (n_beams,)
        Sums to 1, or under "probability" to at most 1.

    Examples
    --------
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
    """Group the beams of each question by meaning.

    Clusters are the connected components of `equivalent`, so two answers may
    share a cluster through a third. Beams without an answer belong to no
    cluster but keep their share of the probability.

    Parameters
    ----------
    equivalent : callable
        Whether the answers of each `persistcal.answers.equivalence.Pair` mean the same;
        symmetric. It is asked about many questions at a time.
    weighting : {"softmax", "probability", "equal"}, default="softmax"
        See `beam_weights`.

    Returns
    -------
    list of list of Cluster
        The clusters of each question by probability, the highest first; of two
        equal ones the one with the better beam, or with the first drawn sample,
        first. Empty if no beam contains an answer.

    Notes
    -----
    Paper, appendix "Self-Consistency Implementation", after Kuhn, Gal and
    Farquhar, "Semantic Uncertainty", ICLR 2023.

    Examples
    --------
    >>> from persistcal.answers.equivalence import identical
    >>> texts, weights = ["Paris", "paris.", "Lyon", ""], [0.4, 0.3, 0.2, 0.1]
    >>> [clusters] = cluster_answers([QuestionBeams("?", texts, np.log(weights))], identical)
    >>> [(cluster.answer, round(cluster.probability, 3)) for cluster in clusters]
    [('Paris', 0.7), ('Lyon', 0.2)]
    """
    ranked = [_rank(beams, weighting) for beams in answered]
    distinct = [list(dict.fromkeys(one.text for one in beams)) for beams in ranked]
    asked = [(beams.question, texts) for beams, texts in zip(answered, distinct, strict=True)]
    return [
        _gather(beams, dict(zip(texts, groups, strict=True)))
        for beams, texts, groups in zip(
            ranked, distinct, group_answers(asked, equivalent), strict=True
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
    if weighting == "equal":
        drawn = Counter(texts)
        rank = np.array([-drawn[text] for text in texts], dtype=float)
    else:
        rank = -np.asarray(beams.logprobs, dtype=float)
    order = np.argsort(rank, kind="stable").tolist()
    places = order if weighting == "equal" else range(len(order))
    ranked = [
        Ranked(texts[beam], float(weights[beam]), place)
        for beam, place in zip(order, places, strict=True)
    ]
    return [one for one in ranked if normalise(one.text)]


def _gather(beams: list[Ranked], group_of: dict[str, int]) -> list[Cluster]:
    """Return the clusters by probability; of equal ones, the one with the first place first.

    The spelling of samples moves texts within a cluster, and not clusters.
    """
    groups: dict[int, list[Ranked]] = {}
    for beam in beams:
        groups.setdefault(group_of[beam.text], []).append(beam)
    found = []
    for members in groups.values():
        texts = list(dict.fromkeys(beam.text for beam in members))
        cluster = Cluster(texts[0], sum(beam.weight for beam in members), texts)
        found.append((-cluster.probability, min(beam.place for beam in members), cluster))
    return [cluster for _, _, cluster in sorted(found)]

"""All answers to a question, and measures of their uncertainty.

Weights sum to 1. With equal weights, as for samples, each measure equals lm-polygraph 0.7. With
unequal weights, as for beams, an answer of twice the weight counts like the same answer drawn
twice.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from persistcal.answers.clusters import beam_weights
from persistcal.confidence.evidence import KEY, Estimator, Evidence

Matrix = NDArray[np.float64]

KEPT = 0.9  # eigenvectors of smaller eigenvalues of the Laplacian count


class Candidates(NamedTuple):
    """The beams or samples of a checkpoint for one question, n of them."""

    texts: list[str]  # stripped; empty where nothing was answered
    logprobs: NDArray[np.float64]
    # Sum to 1: equal for samples, by probability for beams, their clusters' for options.
    weights: NDArray[np.float64]
    groups: NDArray[np.int64]  # cluster of each, -1 where nothing was answered


def of_candidates(confidence: Callable[[Candidates], float]) -> Estimator:
    """Make an estimator of the confidence in an answer by all answers to its question.

    The estimator limits rounding errors to [0, 1].
    """

    @wraps(confidence)
    def rate(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
        rated = {}
        for key, rows in grouped(answers, evidence).groupby(KEY, sort=False):
            logprobs, weights = (rows[n].to_numpy(float) for n in ("logprob", "probability"))
            if not evidence.options:
                weighting = "equal" if evidence.sampled else "softmax"
                weights = beam_weights(logprobs.tolist(), weighting=weighting)
            texts, groups = rows["text"].tolist(), rows["cluster"].to_numpy()
            rated[key] = confidence(Candidates(texts, logprobs, weights, groups))
        keys = zip(*(answers[name] for name in KEY), strict=True)
        return pd.Series([rated[key] for key in keys], answers.index, dtype=float).clip(0, 1)

    return rate


def of_best_beam(confidence: Callable[[pd.DataFrame], pd.Series]) -> Estimator:
    """Make an estimator of the confidences in answers by `own_beams`, limited to [0, 1]."""

    @wraps(confidence)
    def rate(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
        return confidence(own_beams(answers, evidence)).clip(0, 1)

    return rate


def own_beams(answers: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """Return the best beam with the text of each answer, in the order of `answers`."""
    key = [*KEY, "answer"]
    beams = evidence.beams.assign(answer=evidence.beams["text"].str.strip())
    best = beams.sort_values("logprob", ascending=False, kind="stable").drop_duplicates(key)
    return answers[key].merge(best, how="left", validate="one_to_one").set_index(answers.index)


def grouped(answers: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """Return the beams of the answers' questions, with the cluster that each is in."""
    beams = evidence.beams.merge(answers[KEY])
    beams = beams.assign(text=beams["text"].str.strip())
    members = evidence.clusters[[*KEY, "cluster", "probability", "members"]]
    members = members.explode("members")
    members = members.rename(columns={"members": "text"})
    best = beams.merge(members, how="left", validate="many_to_one")
    return best.assign(cluster=best["cluster"].fillna(-1).astype(int))


def jaccard(texts: Sequence[str]) -> Matrix:
    """Return the share of words that each two texts have in common, 1 on the diagonal.

    >>> jaccard(["New York", "york city", "Rome"]).round(3).tolist()
    [[1.0, 0.333, 0.0], [0.333, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    words = [set(text.lower().split()) for text in texts]
    similar = np.eye(len(words))
    for i, word in enumerate(words):
        for j, other_word in enumerate(words[:i]):
            union = len(word | other_word)
            similar[i, j] = similar[j, i] = len(word & other_word) / union if union else 0.0
    return similar


def mean_distance(similar: Matrix, weights: ArrayLike) -> float:
    """Return one minus the mean similarity of two answers, from the degree matrix."""
    weight = np.asarray(weights, float)
    return float(1 - weight @ similar @ weight)


def _affinities(similar: Matrix, weights: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return eigenvalues and eigenvectors of one minus the symmetric normalised Laplacian.

    In the graph each answer occurs in proportion to its weight. The eigenvalues that come from
    repeated equal nodes are 0 and are left out.
    """
    root = np.sqrt(np.asarray(weights, float))
    scale = root / np.sqrt(similar @ root**2)
    return np.linalg.eigh(scale[:, None] * similar * scale)


def laplacian_sum(similar: Matrix, weights: ArrayLike) -> float:
    """Return the sum of one minus the Laplacian's eigenvalues, where that is positive.

    Between 1 and the number of answers: a continuous number of meanings.

    >>> round(laplacian_sum(np.eye(3), [1 / 3] * 3), 6)
    3.0
    """
    return float(_affinities(similar, weights)[0].clip(min=0).sum())


def graph_eccentricity(similar: Matrix, weights: ArrayLike) -> float:
    """Return the distance of answers from their centre in the Laplacian embedding."""
    values, vectors = _affinities(similar, weights)
    kept = vectors[:, 1 - values < KEPT]
    centred = 1 - (np.sqrt(np.asarray(weights, float)) @ kept) ** 2
    return float(np.sqrt(centred.clip(min=0).sum()))


def mean_similarity(similar: Matrix, weights: ArrayLike) -> float:
    """Return the mean similarity of two different answers; 1 when there is only one."""
    weight = np.asarray(weights, float)
    products = np.outer(weight, weight)
    np.fill_diagonal(products, 0)
    return float((products * similar).sum() / products.sum()) if products.sum() > 0 else 1.0

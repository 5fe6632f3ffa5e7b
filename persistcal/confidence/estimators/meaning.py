"""Confidence from the meanings of all answers to a question, and controls.

The controls do not depend on the rated checkpoint's other answers: its position, and
the answers of an earlier checkpoint.
"""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from persistcal.answers.equivalence import Pair, PairTest, form_of
from persistcal.confidence.evidence import Evidence
from persistcal.confidence.uncertainty import (
    Candidates,
    graph_eccentricity,
    jaccard,
    laplacian_sum,
    mean_distance,
    mean_similarity,
    of_candidates,
    own_beams,
)

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


def self_consistency(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of each prediction's cluster.

    Paper, section 3.1, and appendix "Self-Consistency Implementation".
    """
    # Summed floats can exceed 1 by a rounding error.
    return answers["probability"].clip(upper=1)


@of_candidates
def semantic_entropy(candidates: Candidates) -> float:
    """Return exp of minus the entropy of the clusters' probabilities.

    An empty answer is a separate meaning.

    Farquhar, Kossen, Kuhn and Gal, "Detecting Hallucinations in Large Language
    Models Using Semantic Entropy", Nature 2024: the discrete variant for samples
    (lm-polygraph: SemanticEntropyEmpirical), the variant by probability for beams.
    """
    _, groups = np.unique(candidates.groups, return_inverse=True)
    share = np.bincount(groups, candidates.weights)
    share = share[share > 0]
    return np.exp(np.sum(share * np.log(share)))


@of_candidates
def semantic_sequence_entropy(candidates: Candidates) -> float:
    """Return exp of minus the mean log-probability of the answers' clusters.

    Kuhn, Gal and Farquhar, "Semantic Uncertainty", ICLR 2023. A cluster has the
    probability of its distinct texts together, because two samples of one text are the same
    event. lm-polygraph: SemanticEntropyUnique.
    """
    texts, logprobs, weights, groups = candidates
    place = {text: i for i, text in reversed(list(enumerate(texts)))}
    first = np.array(sorted(place.values()))
    total = {g: logsumexp(logprobs[first[groups[first] == g]]) for g in np.unique(groups)}
    return np.exp(np.dot(weights, [total[group] for group in groups]))


@of_candidates
def semantic_sets(candidates: Candidates) -> float:
    """Return one over the number of clusters; empty answers are one cluster.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    NumSemSets, which joins answers that entail more than they contradict each other.
    """
    return 1 / len(np.unique(candidates.groups))


@of_candidates
def degree_matrix(candidates: Candidates) -> float:
    """Return the mean Jaccard similarity of two answers, one minus the paper's U_Deg.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    DegMat_Jaccard_score.
    """
    return 1 - mean_distance(jaccard(candidates.texts), candidates.weights)


@of_candidates
def eccentricity(candidates: Candidates) -> float:
    """Return exp of minus the eccentricity of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    Eccentricity_Jaccard_score.
    """
    return np.exp(-graph_eccentricity(jaccard(candidates.texts), candidates.weights))


@of_candidates
def laplacian_eigenvalues(candidates: Candidates) -> float:
    """Return one over the sum of eigenvalues of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    EigValLaplacian_Jaccard_score.
    """
    return 1 / laplacian_sum(jaccard(candidates.texts), candidates.weights)


@of_candidates
def lexical_similarity(candidates: Candidates) -> float:
    """Return the mean ROUGE-L of two different answers.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020, with the ROUGE-L of Kuhn, Gal and Farquhar, "Semantic
    Uncertainty", ICLR 2023. lm-polygraph: LexicalSimilarity_rougeL.
    """
    texts = candidates.texts
    similar = np.array([[rouge_l(*sorted((a, b))) for b in texts] for a in texts])
    return mean_similarity(similar, candidates.weights)


@cache
def _scorer() -> "RougeScorer":
    try:  # here, because the import takes seconds
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ValueError(
            "the estimator lexical_similarity needs the package rouge-score; install it, or "
            "choose another estimator"
        ) from error
    return RougeScorer(["rougeL"], use_stemmer=True)


@cache
def rouge_l(first: str, second: str) -> float:
    """Return the F-measure of ROUGE-L, which is symmetric; 0 where a text has no word."""
    return _scorer().score(first, second)["rougeL"].fmeasure


def cocoa(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of the best beam's log-probability times the share that disagrees with it.

    An answer agrees if it is in the prediction's cluster.

    Vashurin et al., "Uncertainty Quantification for LLMs through Minimum Bayes
    Risk: Bridging Confidence and Consistency", 2025, arXiv:2502.04964, with
    equivalence as the similarity. lm-polygraph: CocoaMSP.
    """
    disagrees = 1 - answers["probability"].clip(upper=1)
    rated = np.exp(own_beams(answers, evidence)["logprob"] * disagrees)
    return pd.Series(rated).clip(upper=1)


def end_correct(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return i / (m - 1) at the i-th of m evaluation checkpoints.

    Paper, section 3.1, "End-correct Baseline".
    """
    places = np.linspace(0, 1, len(evidence.evaluation))
    return answers["checkpoint"].map(dict(zip(evidence.evaluation, places, strict=True)))


def self_consistency_surrogate(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the last earlier checkpoint gives to each prediction.

    Paper, appendix "Self-Consistency Implementation".
    """
    clusters = evidence.clusters[evidence.clusters["checkpoint"] == evidence.earlier[-1]]
    if evidence.options:  # options have different meanings
        key = ["question_id", "answer"]
        shares = clusters.set_index(key)["probability"]
        keys = pd.MultiIndex.from_frame(answers[key])
        return shares.reindex(keys).fillna(0.0).clip(upper=1).set_axis(answers.index)
    assert evidence.equivalent is not None
    columns = ["question_id", "question", "answer"]
    candidates = clusters.drop(columns="checkpoint")
    return surrogate_confidences(answers[columns], candidates, evidence.equivalent)


def surrogate_confidences(
    predictions: pd.DataFrame, candidates: pd.DataFrame, equivalent: PairTest
) -> pd.Series:
    """Return the probability that another checkpoint gives to each prediction.

    It is the summed probability of the clusters with a member that equals the prediction or has
    the same meaning, and 0 without such a cluster. `predictions` have columns question_id,
    question and answer, `candidates` are the CLUSTERS of the other checkpoint, and `equivalent`
    returns whether the answers of each pair mean the same.

    >>> from persistcal.answers.equivalence import identical
    >>> predictions = pd.DataFrame(
    ...     {"question_id": ["q", "q"], "question": "Capital?", "answer": ["paris", "Rome"]}
    ... )
    >>> candidates = pd.DataFrame(
    ...     {"question_id": ["q"], "probability": [0.7]}
    ... ).assign(members=[["Paris."]])
    >>> surrogate_confidences(predictions, candidates, identical).tolist()
    [0.7, 0.0]
    """
    rows = predictions.reset_index(names="row").merge(
        candidates, on="question_id", suffixes=("", "_candidate")
    )
    form = form_of(equivalent)
    matches = pd.Series(
        [
            form(answer) in map(form, members)
            for answer, members in zip(rows["answer"], rows["members"], strict=True)
        ],
        index=rows.index,
        dtype=bool,
    )
    # Members of a cluster need not all be equivalent to a new answer.
    rest = rows.loc[~matches, ["question", "answer", "members"]].explode("members")
    same = equivalent(list(map(Pair, rest["question"], rest["answer"], rest["members"])))
    matches[rest.index[np.asarray(same, dtype=bool)]] = True
    mass = rows[matches].groupby("row")["probability"].sum()
    # Summed floats can exceed 1 by a rounding error.
    return mass.reindex(predictions.index, fill_value=0.0).clip(upper=1)


def self_consistency_copy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the last earlier checkpoint's self-consistency, 0 where it has no answer.

    Paper, section "Ablations": a copy cannot change with the checkpoint.
    """
    clusters = evidence.clusters
    first = clusters[
        (clusters["checkpoint"] == evidence.earlier[-1]) & (clusters["cluster"] == 0)
    ]
    copied = first.set_index("question_id")["probability"].clip(upper=1)
    return answers["question_id"].map(copied).fillna(0.0)

"""Confidence from the meanings of all answers to a question."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from persistcal.confidence import uncertainty
from persistcal.confidence.evidence import Evidence
from persistcal.confidence.registry import estimator
from persistcal.confidence.uncertainty import (
    Candidates,
    group_entropy,
    group_sequence_entropy,
    jaccard,
    laplacian_sum,
    mean_distance,
    mean_similarity,
    own_beams,
    rate_candidates,
)

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


@estimator("Self-consistency", needs=("several_answers",))
def self_consistency(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of each prediction's cluster.

    Paper, section 3.1, and appendix "Self-Consistency Implementation".
    """
    # Summed floats can exceed 1 by a rounding error.
    return answers["probability"].clip(upper=1)


@estimator("Semantic entropy", needs=("several_answers",))
def semantic_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the entropy of the clusters' probabilities.

    An empty answer is a separate meaning.

    Farquhar, Kossen, Kuhn and Gal, "Detecting Hallucinations in Large Language
    Models Using Semantic Entropy", Nature 2024: the discrete variant for samples
    (lm-polygraph: SemanticEntropyEmpirical), the variant by probability for beams.
    """
    return rate_candidates(
        answers, evidence, lambda c: np.exp(-group_entropy(c.groups, c.weights))
    )


@estimator("Semantic entropy, Monte Carlo", needs=("logprob", "several_answers"))
def semantic_sequence_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the mean log-probability of the answers' clusters.

    Kuhn, Gal and Farquhar, "Semantic Uncertainty", ICLR 2023. A cluster has the
    probability of its distinct texts together. lm-polygraph: SemanticEntropyUnique.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: min(1.0, np.exp(-group_sequence_entropy(*c[:2], c[3], c[2]))),
    )


@estimator("Number of meanings", needs=("several_answers",))
def semantic_sets(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one over the number of clusters; empty answers are one cluster.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    NumSemSets, which joins answers that entail more than they contradict each other.
    """
    return rate_candidates(answers, evidence, lambda c: 1 / len(np.unique(c.groups)))


@estimator("Degree matrix", needs=("several_answers",))
def degree_matrix(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean Jaccard similarity of two answers, one minus the paper's U_Deg.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    DegMat_Jaccard_score.
    """
    return rate_candidates(
        answers, evidence, lambda c: 1 - mean_distance(jaccard(c.texts), c.weights)
    ).clip(0, 1)


@estimator("Eccentricity", needs=("several_answers",))
def eccentricity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return exp of minus the eccentricity of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    Eccentricity_Jaccard_score.
    """
    return rate_candidates(
        answers,
        evidence,
        lambda c: np.exp(-uncertainty.eccentricity(jaccard(c.texts), c.weights)),
    )


@estimator("Laplacian eigenvalues", needs=("several_answers",))
def laplacian_eigenvalues(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one over the sum of eigenvalues of the graph of Jaccard similarities.

    Lin, Trivedi and Sun, "Generating with Confidence", TMLR 2024. lm-polygraph:
    EigValLaplacian_Jaccard_score.
    """
    # The sum is at least 1, up to rounding.
    return rate_candidates(
        answers, evidence, lambda c: 1 / max(1, laplacian_sum(jaccard(c.texts), c.weights))
    )


@estimator("Lexical similarity", needs=("several_answers",))
def lexical_similarity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean ROUGE-L of two different answers.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020, with the ROUGE-L of Kuhn, Gal and Farquhar, "Semantic
    Uncertainty", ICLR 2023. lm-polygraph: LexicalSimilarity_rougeL.
    """
    return rate_candidates(answers, evidence, _similarity).clip(0, 1)


def _similarity(candidates: Candidates) -> float:
    texts = candidates.texts
    similar = np.array(
        [[rouge_l(*sorted((first, second))) for second in texts] for first in texts]
    )
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


@estimator("CoCoA", needs=("logprob", "several_answers"))
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

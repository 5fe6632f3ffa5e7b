"""Measures of uncertainty, against lm-polygraph, by hand, and for repeated answers."""

import sys

import numpy as np
import pytest
import torch
from polygraph import estimator, part

from persistcal.answers.continuations import rank_tokens, summarise
from persistcal.confidence import uncertainty
from persistcal.confidence.estimators import meaning
from persistcal.confidence.estimators.meaning import (
    rouge_l,
    semantic_entropy,
    semantic_sequence_entropy,
)
from persistcal.confidence.estimators.probabilities import sequence_entropy
from persistcal.confidence.uncertainty import Candidates, jaccard

WORDS = ["New York", "new york City", "York", "Rome", "the city of Rome", "Oslo", ""]
WORDS += ["running", "runs"]
GRAPHS = {
    uncertainty.mean_distance: ("deg_mat", "DegMat"),
    uncertainty.graph_eccentricity: ("eccentricity", "Eccentricity"),
    uncertainty.laplacian_sum: ("eig_val_laplacian", "EigValLaplacian"),
}


def draw(seed, n=8):
    """Return texts, log-probabilities and groups (by first letter) of `n` random answers."""
    rng = np.random.default_rng(seed)
    texts = [str(text) for text in rng.choice(WORDS, n)]
    letters = [text[:1].lower() for text in texts]
    groups = [letters.index(letter) for letter in letters]
    return texts, rng.normal(-4, 1, n), groups


def classes(groups):
    """Return the groups in lm-polygraph's format."""
    names = list(dict.fromkeys(groups))
    members = [[i for i, group in enumerate(groups) if group == name] for name in names]
    class_of = {i: number for number, rows in enumerate(members) for i in rows}
    return {"class_to_sample": {0: members}, "sample_to_class": {0: class_of}}


def equal(n):
    return np.full(n, 1 / n)


def similar_matrix(seed, n=8):
    """Return a random symmetric matrix of similarities."""
    one_way = np.random.default_rng(seed).random((n, n)) ** 3
    return np.maximum((one_way + one_way.T) / 2, np.eye(n))


def uncertainty_of(estimator, texts, logprobs, groups, weights):
    """Return minus the logarithm of the confidence by all answers to a question."""
    arrays = map(np.asarray, (logprobs, weights, groups))
    return -np.log(estimator.__wrapped__(Candidates(texts, *arrays)))


def peer_value(module, name, stats, **settings):
    """Return the value of lm-polygraph's estimator."""
    [value] = estimator(module, name)(**settings)(stats)
    return float(value)


@pytest.mark.parametrize("seed", range(3))
def test_entropies_and_semantic_sets_equal_lm_polygraph(seed):
    texts, logprobs, groups = draw(seed)
    stats = {"sample_log_probs": [logprobs], "sample_texts": [texts]}
    entropy = uncertainty_of(sequence_entropy, texts, logprobs, groups, equal(8))
    module = "monte_carlo_sequence_entropy"
    assert entropy == pytest.approx(peer_value(module, "MonteCarloSequenceEntropy", stats))

    stats["semantic_classes_entail"] = classes(groups)
    settings = {"class_probability_estimation": "frequency"}
    entropy = uncertainty_of(semantic_entropy, texts, logprobs, groups, equal(8))
    assert entropy == pytest.approx(
        peer_value("semantic_entropy", "SemanticEntropy", stats, **settings), abs=1e-12
    )
    # Equal texts get equal log-probabilities, because lm-polygraph keeps any of them.
    one_each = np.array([logprobs[texts.index(text)] for text in texts])
    stats["sample_log_probs"] = [one_each]
    entropy = uncertainty_of(semantic_sequence_entropy, texts, one_each, groups, equal(8))
    assert entropy == pytest.approx(
        peer_value("semantic_entropy", "SemanticEntropy", stats, use_unique_responses=True)
    )
    # Answers of one group entail each other; answers of different groups contradict.
    entail = np.equal.outer(groups, groups)[None].astype(float)
    stats |= {"semantic_matrix_entail": entail, "semantic_matrix_contra": 1 - entail}
    assert len(set(groups)) == peer_value("num_sem_sets", "NumSemSets", stats)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("measure", GRAPHS)
def test_graph_measures_equal_lm_polygraph(seed, measure):
    module, name = GRAPHS[measure]
    texts, _, _ = draw(seed)
    words = {"similarity_score": "Jaccard_score"}
    value = measure(jaccard(texts), equal(8))
    expected = peer_value(module, name, {"sample_texts": [texts]}, **words)
    assert value == pytest.approx(expected, abs=1e-6)
    # Also for arbitrary similarities, such as an entailment model's.
    matrix = similar_matrix(seed)
    stats = {"sample_texts": [texts], "semantic_matrix_entail": matrix[None]}
    assert measure(matrix, equal(8)) == pytest.approx(peer_value(module, name, stats), abs=1e-6)


@pytest.mark.parametrize(("shared", "expected"), [(0.81, 1.0), (0.83, 0.0)])
def test_eccentricity_counts_eigenvalues_below_nine_tenths(shared, expected):
    # Eigenvalues of the Laplacian: 0 and 2 s / (1 + s), which is 1.62 / 1.81 = 0.895 or
    # 1.66 / 1.83 = 0.907. Eigenvectors: (1, 1) and (1, -1), over root two. If the second one
    # counts, the answers are at 1 / root two and -1 / root two: root (1/2 + 1/2) = 1.
    matrix = np.array([[1, shared], [shared, 1]])
    assert uncertainty.graph_eccentricity(matrix, equal(2)) == pytest.approx(expected, abs=1e-6)
    stats = {"sample_texts": [["a", "b"]], "semantic_matrix_entail": matrix[None]}
    peer = peer_value("eccentricity", "Eccentricity", stats)
    assert peer == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_lexical_similarity_equals_lm_polygraph(seed):
    texts, _, _ = draw(seed)
    matrix = np.array([[rouge_l(*sorted((a, b))) for b in texts] for a in texts])
    expected = peer_value("lexical_similarity", "LexicalSimilarity", {"sample_texts": [texts]})
    assert uncertainty.mean_similarity(matrix, equal(8)) == pytest.approx(-expected)


def test_token_estimators_and_cocoa_equal_lm_polygraph():
    """lm-polygraph returns minus the logarithm of these three confidences."""
    tokens, entropies = np.log([0.5, 0.25, 0.8]), np.array([0.3, 1.2, 0.1])
    stats = {"greedy_log_likelihoods": [tokens], "entropy": [entropies]}
    # The table BEAMS contains logprob, n_tokens and the mean entropy.
    assert -tokens.sum() / 3 == pytest.approx(peer_value("perplexity", "Perplexity", stats))
    module = "max_probability"
    assert -tokens.sum() == pytest.approx(
        peer_value(module, "MaximumSequenceProbability", stats)
    )
    assert entropies.mean() == pytest.approx(
        peer_value("token_entropy", "MeanTokenEntropy", stats)
    )
    # 3 of 4 samples agree with the answer, so its cluster has probability 0.75
    stats["greedy_sentence_similarity"] = [np.array([1, 0, 1, 1])]
    expected = peer_value("cocoa", "CocoaMSP", stats)
    assert -tokens.sum() * (1 - 0.75) == pytest.approx(expected)


def test_summaries_of_token_distributions_equal_lm_polygraph_and_uqlm():
    """Three tokens; the second distribution contains an impossible token."""
    logits = np.random.default_rng(0).normal(0, 2, (3, 20))
    logits[1, 4] = -np.inf
    logprobs = torch.tensor(logits).log_softmax(dim=1)
    chosen = logprobs[range(3), [0, 7, 19]]
    summary = torch.zeros(1, 4, dtype=torch.float64)
    for measured, token in zip(rank_tokens(logprobs, 2).measured, chosen, strict=True):
        summary = summarise(summary, measured[None], token[None])
    entropy, certainty, margin, least = (summary[0] / torch.tensor([3, 3, 3, 1])).tolist()
    stats = {"greedy_log_probs": [list(logprobs.numpy())]}
    assert -certainty == pytest.approx(peer_value("self_certainty", "SelfCertainty", stats))

    listed = [
        {"logprob": logprob, "top_logprobs": [{"logprob": x} for x in row]}
        for logprob, row in zip(chosen.tolist(), logprobs.tolist(), strict=True)
    ]
    scorers = {"single_logprobs": "SingleLogprobsScorer", "top_logprobs": "TopLogprobsScorer"}
    single, all_tokens = (
        part(f"white_box.{module}", name, package="uqlm")().evaluate([listed])
        for module, name in scorers.items()
    )
    assert single["min_probability"] == pytest.approx([np.exp(least)])
    assert all_tokens["probability_margin"] == pytest.approx([margin])

    stats = {"entropy": [-(logprobs.exp() * logprobs).nansum(dim=1).numpy()]}
    assert entropy == pytest.approx(peer_value("token_entropy", "MeanTokenEntropy", stats))


@pytest.mark.parametrize("seed", range(2))
def test_weighted_answers_give_the_same_value_as_repeated_answers(seed):
    """An answer of weight 3 / 10 counts like three of ten equal answers."""
    n_times = np.array([3, 1, 2, 4])
    texts = ["New York", "York", "Rome", "running"]
    _, logprobs, _ = draw(seed, 4)
    groups, weights = [0, 0, 1, 2], n_times / 10
    rows = np.repeat(np.arange(4), n_times)
    repeated_texts, equal_weights = [texts[i] for i in rows], equal(10)
    repeated_groups = [groups[i] for i in rows]
    repeated_answers = repeated_texts, logprobs[rows], repeated_groups
    for confidence in (sequence_entropy, semantic_entropy, semantic_sequence_entropy):
        expected = uncertainty_of(confidence, *repeated_answers, equal_weights)
        value = uncertainty_of(confidence, texts, logprobs, groups, weights)
        assert value == pytest.approx(expected)
    for measure in GRAPHS:
        expected = measure(jaccard(repeated_texts), equal_weights)
        assert measure(jaccard(texts), weights) == pytest.approx(expected, abs=1e-6)


def test_mean_similarity_weighs_pairs():
    # (0.5 * 0.2 * 1 + 0.5 * 0.3 * 0 + 0.3 * 0.2 * 0) / (0.1 + 0.15 + 0.06) = 0.1 / 0.31
    similar = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert uncertainty.mean_similarity(similar, [0.5, 0.2, 0.3]) == pytest.approx(0.1 / 0.31)


def test_a_single_answer_is_certain():
    similarity = np.ones((1, 1))
    assert uncertainty_of(semantic_entropy, ["a", "b"], [-1, -1], [0, 1], [1.0, 0.0]) == 0
    assert uncertainty.mean_similarity(similarity, [1.0]) == 1
    assert uncertainty.mean_distance(similarity, [1.0]) == 0
    assert uncertainty.graph_eccentricity(similarity, [1.0]) == pytest.approx(0, abs=1e-6)
    assert uncertainty.laplacian_sum(similarity, [1.0]) == pytest.approx(1)


def test_lexical_similarity_without_its_package_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    meaning._scorer.cache_clear()
    with pytest.raises(ValueError, match="lexical_similarity needs the package rouge-score"):
        rouge_l("a text", "another text that no other test compares")

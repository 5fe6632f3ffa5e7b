"""Measures of uncertainty, against lm-polygraph, by hand, and under repetition of answers."""

import sys

import numpy as np
import pytest
import torch
from polygraph import estimator, part

from persistcal.answers.continuations import measure_distributions, summarise
from persistcal.confidence import uncertainty
from persistcal.confidence.estimators import meaning
from persistcal.confidence.estimators.meaning import rouge_l
from persistcal.confidence.uncertainty import jaccard

WORDS = ["New York", "new york City", "York", "Rome", "the city of Rome", "Oslo", ""]
WORDS += ["running", "runs"]
GRAPHS = {
    uncertainty.mean_distance: ("deg_mat", "DegMat"),
    uncertainty.eccentricity: ("eccentricity", "Eccentricity"),
    uncertainty.laplacian_sum: ("eig_val_laplacian", "EigValLaplacian"),
}


def draw(seed, n=8):
    """Texts, log-probabilities and groups (of equal first letters) of `n` answers."""
    rng = np.random.default_rng(seed)
    texts = [str(text) for text in rng.choice(WORDS, n)]
    letters = [text[:1].lower() for text in texts]
    groups = [letters.index(letter) for letter in letters]
    return texts, rng.normal(-4, 1, n), groups


def classes(groups):
    """The groups as lm-polygraph has them."""
    names = list(dict.fromkeys(groups))
    members = [[i for i, group in enumerate(groups) if group == name] for name in names]
    place = {i: number for number, rows in enumerate(members) for i in rows}
    return {"class_to_sample": {0: members}, "sample_to_class": {0: place}}


def equal(n):
    return np.full(n, 1 / n)


def similar_matrix(seed, n=8):
    """Similarities as of an entailment model, made symmetric."""
    both = np.random.default_rng(seed).random((n, n)) ** 3
    return np.maximum((both + both.T) / 2, np.eye(n))


def theirs(module, name, stats, **settings):
    [value] = estimator(module, name)(**settings)(stats)
    return float(value)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_and_sets_are_those_of_lm_polygraph(seed):
    texts, logprobs, groups = draw(seed)
    stats = {"sample_log_probs": [logprobs], "sample_texts": [texts]}
    found = uncertainty.sequence_entropy(logprobs, equal(8))
    module = "monte_carlo_sequence_entropy"
    assert found == pytest.approx(theirs(module, "MonteCarloSequenceEntropy", stats))

    stats["semantic_classes_entail"] = classes(groups)
    frequency = {"class_probability_estimation": "frequency"}
    found = uncertainty.group_entropy(groups, equal(8))
    assert found == pytest.approx(
        theirs("semantic_entropy", "SemanticEntropy", stats, **frequency), abs=1e-12
    )
    # One log-probability for each text, as lm-polygraph takes any of them.
    one_each = np.array([logprobs[texts.index(text)] for text in texts])
    stats["sample_log_probs"] = [one_each]
    found = uncertainty.group_sequence_entropy(texts, one_each, groups, equal(8))
    assert found == pytest.approx(
        theirs("semantic_entropy", "SemanticEntropy", stats, use_unique_responses=True)
    )
    # Answers of a group entail each other; others contradict.
    entail = np.equal.outer(groups, groups)[None].astype(float)
    stats |= {"semantic_matrix_entail": entail, "semantic_matrix_contra": 1 - entail}
    assert len(set(groups)) == theirs("num_sem_sets", "NumSemSets", stats)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ours", GRAPHS)
def test_graphs_are_those_of_lm_polygraph(seed, ours):
    module, name = GRAPHS[ours]
    texts, _, _ = draw(seed)
    words = {"similarity_score": "Jaccard_score"}
    found = ours(jaccard(texts), equal(8))
    expected = theirs(module, name, {"sample_texts": [texts]}, **words)
    assert found == pytest.approx(expected, abs=1e-6)
    # and of any similarities, as those of an entailment model
    matrix = similar_matrix(seed)
    stats = {"sample_texts": [texts], "semantic_matrix_entail": matrix[None]}
    assert ours(matrix, equal(8)) == pytest.approx(theirs(module, name, stats), abs=1e-6)


@pytest.mark.parametrize(("shared", "expected"), [(0.81, 1.0), (0.83, 0.0)])
def test_two_answers_are_apart_where_the_laplacian_has_a_value_below_nine_tenths(
    shared, expected
):
    # Its values are 0 and 2 s / (1 + s): 1.62 / 1.81 = 0.895 and 1.66 / 1.83 = 0.907. Vectors
    # are (1, 1) and (1, -1), over root two: the latter puts either answer at 1 / root two.
    matrix = np.array([[1, shared], [shared, 1]])
    assert uncertainty.eccentricity(matrix, equal(2)) == pytest.approx(expected, abs=1e-6)
    stats = {"sample_texts": [["a", "b"]], "semantic_matrix_entail": matrix[None]}
    found = theirs("eccentricity", "Eccentricity", stats)
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_lexical_similarity_is_that_of_lm_polygraph(seed):
    texts, _, _ = draw(seed)
    matrix = np.array([[rouge_l(*sorted((one, other))) for other in texts] for one in texts])
    expected = theirs("lexical_similarity", "LexicalSimilarity", {"sample_texts": [texts]})
    assert uncertainty.mean_similarity(matrix, equal(8)) == pytest.approx(-expected)


def test_of_tokens_and_of_agreement_are_those_of_lm_polygraph():
    """lm-polygraph's values are minus the logarithms of these three."""
    tokens, entropies = np.log([0.5, 0.25, 0.8]), np.array([0.3, 1.2, 0.1])
    stats = {"greedy_log_likelihoods": [tokens], "entropy": [entropies]}
    # logprob / n_tokens and the mean entropy, as BEAMS has them
    assert -tokens.sum() / 3 == pytest.approx(theirs("perplexity", "Perplexity", stats))
    module = "max_probability"
    assert -tokens.sum() == pytest.approx(theirs(module, "MaximumSequenceProbability", stats))
    assert entropies.mean() == pytest.approx(theirs("token_entropy", "MeanTokenEntropy", stats))
    # 3 of 4 samples agree with the answer, so its cluster has probability 0.75
    stats["greedy_sentence_similarity"] = [np.array([1, 0, 1, 1])]
    expected = theirs("cocoa", "CocoaMSP", stats)
    assert -tokens.sum() * (1 - 0.75) == pytest.approx(expected)


def test_summaries_of_tokens_are_those_of_lm_polygraph_and_uqlm():
    """Of three tokens; one distribution has a token that is impossible."""
    logits = np.random.default_rng(0).normal(0, 2, (3, 20))
    logits[1, 4] = -np.inf
    logprobs = torch.tensor(logits).log_softmax(dim=1)
    chosen = logprobs[range(3), [0, 7, 19]]
    summary = torch.zeros(1, 4, dtype=torch.float64)
    for measured, token in zip(measure_distributions(logprobs), chosen, strict=True):
        summary = summarise(summary, measured[None], token[None])
    entropy, certainty, margin, least = (summary[0] / torch.tensor([3, 3, 3, 1])).tolist()
    stats = {"greedy_log_probs": [list(logprobs.numpy())]}
    assert -certainty == pytest.approx(theirs("self_certainty", "SelfCertainty", stats))
    listed = [
        {"logprob": own, "top_logprobs": [{"logprob": x} for x in row]}
        for own, row in zip(chosen.tolist(), logprobs.tolist(), strict=True)
    ]
    scorers = {"single_logprobs": "SingleLogprobsScorer", "top_logprobs": "TopLogprobsScorer"}
    one, all_of_them = (
        part(f"white_box.{module}", name, package="uqlm")().evaluate([listed])
        for module, name in scorers.items()
    )
    assert one["min_probability"] == pytest.approx([np.exp(least)])
    assert all_of_them["probability_margin"] == pytest.approx([margin])
    stats = {"entropy": [-(logprobs.exp() * logprobs).nansum(dim=1).numpy()]}
    assert entropy == pytest.approx(theirs("token_entropy", "MeanTokenEntropy", stats))


@pytest.mark.parametrize("seed", range(2))
def test_a_weight_is_how_often_an_answer_occurs(seed):
    """An answer of weight 3 / 10 is worth three of ten equal ones."""
    times = np.array([3, 1, 2, 4])
    texts = ["New York", "York", "Rome", "running"]
    _, logprobs, _ = draw(seed, 4)
    groups, weights = [0, 0, 1, 2], times / 10
    again = np.repeat(np.arange(4), times)
    many, equally = [texts[i] for i in again], equal(10)
    repeated = [groups[i] for i in again]
    all_of_them = many, logprobs[again], repeated
    for measure, once, each in (
        (uncertainty.sequence_entropy, (logprobs,), (logprobs[again],)),
        (uncertainty.group_entropy, (groups,), (repeated,)),
        (uncertainty.group_sequence_entropy, (texts, logprobs, groups), all_of_them),
    ):
        assert measure(*once, weights) == pytest.approx(measure(*each, equally))
    for measure in GRAPHS:
        each = measure(jaccard(many), equally)
        assert measure(jaccard(texts), weights) == pytest.approx(each, abs=1e-6)


def test_mean_similarity_by_hand():
    # mean over the pairs, weighted: (0.5 * 0.2 * 1 + 0.5 * 0.3 * 0 + 0.3 * 0.2 * 0) / 0.31
    similar = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert uncertainty.mean_similarity(similar, [0.5, 0.2, 0.3]) == pytest.approx(0.1 / 0.31)


def test_one_answer_is_certain():
    one = np.ones((1, 1))
    assert uncertainty.group_entropy([0, 1], [1.0, 0.0]) == 0
    assert uncertainty.mean_similarity(one, [1.0]) == 1
    assert uncertainty.mean_distance(one, [1.0]) == 0
    assert uncertainty.eccentricity(one, [1.0]) == pytest.approx(0, abs=1e-6)
    assert uncertainty.laplacian_sum(one, [1.0]) == pytest.approx(1)


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    meaning._scorer.cache_clear()
    with pytest.raises(ValueError, match="lexical_similarity needs the package rouge-score"):
        rouge_l("a text", "another text that no other test compares")

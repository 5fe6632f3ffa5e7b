"""Options of multiple choice as candidate answers."""

import numpy as np
import pandas as pd
import pytest
from answer_tables import LEXICAL, questions_table
from cluster_answers import cluster_answers
from estimation import of_each, predictions
from judge_answers import judge_answers

from persistcal.answers.options import option_clusters
from persistcal.store import artifacts

OPTIONS = {"q0": ["Oslo", "oslo.", "Rome!"], "q1": ["four", "4"]}
# Tokens 1, 2, 3 and 1, 1; characters 4, 5, 5 and 4, 1
SCORED = [
    ("q0", 0, "Oslo", -3.0, 1, None, -1.0),
    ("q0", 1, "oslo.", -4.0, 2, None, -7.0),
    ("q0", 2, "Rome!", -4.5, 3, None, -3.5),
    ("q1", 0, "four", -2.0, 1, None, -2.0),
    ("q1", 1, "4", -2.0, 1, None, -2.0),
]
# In the order of SCORED: per token -3 / 1, -4 / 2, -4.5 / 3 and -2 / 1, -2 / 1; per character
# -3 / 4, -4 / 5, -4.5 / 5 and -2 / 4, -2 / 1; unconditional -3 + 1, -4 + 7, -4.5 + 3 and 0, 0.
SCORES = {
    "none": ([-3, -4, -4.5], [-2, -2]),
    "per_token": ([-3, -2, -1.5], [-2, -2]),
    "per_character": ([-0.75, -0.8, -0.9], [-0.5, -2]),
    "unconditional": ([-2, 3, -1], [0, 0]),
}


def questions():
    return questions_table(0, 2).assign(
        question=["Capital?", "2+2?"],
        references=[["oslo."], ["four"]],
        options=list(OPTIONS.values()),
        gold=[1, 0],
    )


def scored_options():
    names = ["question_id", "beam", "text", "logprob", "n_tokens", "entropy", "unconditional"]
    return pd.DataFrame(SCORED, columns=names)


def cluster_options(normalisation):
    """Return clusters by the rule's function, which needs no entailment model for options."""
    settings = {"equivalence": {"backend": "nli"}, "weighting": "equal", "dataset": "quiz"}
    settings |= {"normalisation": normalisation, "threads": 1}
    return cluster_answers(questions(), scored_options().iloc[[2, 0, 1, 4, 3]], **settings)


@pytest.mark.parametrize("normalisation", SCORES)
def test_each_option_is_a_cluster_with_its_share_of_the_softmax(normalisation):
    clusters = cluster_options(normalisation)
    artifacts.check(clusters, artifacts.CLUSTERS, "clusters")
    for question, scores in zip(OPTIONS, SCORES[normalisation], strict=True):
        shares = np.exp(scores) / np.exp(scores).sum()
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        rows = clusters[clusters["question_id"] == question]
        assert rows["answer"].tolist() == [OPTIONS[question][i] for i in order]
        assert rows["cluster"].tolist() == list(range(len(order)))
        assert rows["probability"].tolist() == pytest.approx(shares[order])
        assert rows["members"].tolist() == [[answer] for answer in rows["answer"]]


def test_the_gold_option_is_correct_without_a_judge():
    """A lexical judge would accept "Oslo" for "oslo.", which is another option."""
    given = artifacts.empty(artifacts.GIVEN_LABELS)
    labels, answers = judge_answers(questions(), cluster_options("none"), given, **LEXICAL)
    # q0: Oslo, oslo., Rome!; q1: four and 4, equally probable.
    assert (labels["label"] == "correct").tolist() == [False, True, False, True, False]
    assert set(labels["source"]) == {"gold"}
    assert answers["answer"].tolist() == ["Oslo", "four"]
    assert answers["correct"].tolist() == [False, True]


@pytest.mark.parametrize("normalisation", ["per_token", "unconditional"])
def test_a_normalisation_that_needs_missing_numbers_is_refused(normalisation):
    incomplete = scored_options().assign(n_tokens=None, unconditional=None)
    column = "n_tokens" if normalisation == "per_token" else normalisation
    message = f"normalisation {normalisation} needs the {column} .* and 5 have none, .* 'q0'"
    with pytest.raises(ValueError, match=message):
        option_clusters(incomplete, normalisation)
    assert len(option_clusters(incomplete, "per_character")) == 5


def test_estimators_weight_options_by_the_probabilities_of_clusters():
    """The weighting is for samples, so it must not change options."""
    beams, clusters = scored_options(), cluster_options("per_token")
    judged = clusters.query("cluster == 0").assign(split="test", correct=False)
    tables = [of_each(dict.fromkeys("mn", t)) for t in (beams, clusters, judged)]
    shares = [np.exp(s) / np.exp(s).sum() for s in map(np.array, SCORES["per_token"])]
    expected = {
        "self_consistency": [max(share) for share in shares],
        "semantic_entropy": [np.exp(np.sum(share * np.log(share))) for share in shares],
        "sequence_entropy": [np.exp(shares[0] @ [-3, -4, -4.5]), np.exp(-2)],
        # m's probability of the option that n answers, and of no other spelling
        "self_consistency_surrogate": [max(share) for share in shares],
    }
    for function, values in expected.items():
        estimator = {"function": function, "compares_answers": True, "sampled": True}
        estimator |= {"earlier": ["m"], "evaluation": ["n"]}
        table = predictions((questions(), *tables), "mn", "n", **estimator)
        assert table["confidence"].tolist() == pytest.approx(values), function

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
# By hand: -3, -4, -4.5; -3, -2, -1.5; -3/4, -4/5, -4.5/5; -2, 3, -1. Of q1: equal but per
# character, where -2/4 is above -2.
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


def scored():
    names = ["question_id", "beam", "text", "logprob", "n_tokens", "entropy", "unconditional"]
    return pd.DataFrame(SCORED, columns=names)


def clustered(normalisation):
    """What the rule makes of options, whose entailment model is not there."""
    how = {"equivalence": {"backend": "nli"}, "weighting": "equal", "dataset": "quiz"}
    how |= {"normalisation": normalisation, "threads": 1}
    return cluster_answers(questions(), scored().iloc[[2, 0, 1, 4, 3]], **how)


@pytest.mark.parametrize("how", SCORES)
def test_each_option_is_a_cluster_with_its_share_of_the_softmax(how):
    clusters = clustered(how)
    artifacts.check(clusters, artifacts.CLUSTERS, "clusters")
    for question, scores in zip(OPTIONS, SCORES[how], strict=True):
        shares = np.exp(scores) / np.exp(scores).sum()
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        found = clusters[clusters["question_id"] == question]
        assert found["answer"].tolist() == [OPTIONS[question][i] for i in order]
        assert found["cluster"].tolist() == list(range(len(order)))
        assert found["probability"].tolist() == pytest.approx(shares[order])
        assert found["members"].tolist() == [[answer] for answer in found["answer"]]


def test_the_gold_option_is_right_and_nothing_is_asked():
    """A lexical match would take Oslo for oslo., which is another option."""
    given = artifacts.empty(artifacts.GIVEN_LABELS)
    labels, answers = judge_answers(questions(), clustered("none"), given, **LEXICAL)
    # q0: Oslo, oslo., Rome!; q1: four before 4, which is as probable.
    assert (labels["label"] == "correct").tolist() == [False, True, False, True, False]
    assert set(labels["source"]) == {"gold"}
    assert answers["answer"].tolist() == ["Oslo", "four"]
    assert answers["correct"].tolist() == [False, True]


@pytest.mark.parametrize("how", ["per_token", "unconditional"])
def test_a_normalisation_that_lacks_its_numbers_is_refused(how):
    lacking = scored().assign(n_tokens=None, unconditional=None)
    column = "n_tokens" if how == "per_token" else how
    message = f"normalisation {how} needs the {column} of each option, and 5 have none, .* 'q0'"
    with pytest.raises(ValueError, match=message):
        option_clusters(lacking, how)
    assert len(option_clusters(lacking, "per_character")) == 5


def test_estimators_weigh_options_as_their_clusters():
    """Also where other questions are answered with samples, which weigh equally."""
    kinds = scored(), clustered("per_token")
    judged = kinds[1].query("cluster == 0").assign(split="test", correct=False)
    tables = [of_each(dict.fromkeys("mn", t)) for t in (*kinds, judged)]
    shares = [np.exp(s) / np.exp(s).sum() for s in map(np.array, SCORES["per_token"])]
    expected = {
        "self_consistency": [max(share) for share in shares],
        "semantic_entropy": [np.exp(np.sum(share * np.log(share))) for share in shares],
        "sequence_entropy": [np.exp(shares[0] @ [-3, -4, -4.5]), np.exp(-2)],
        # Of n's answers what m gives to the same option, and to no other spelling of it
        "self_consistency_surrogate": [max(share) for share in shares],
    }
    for function, values in expected.items():
        how = {"function": function, "compares_answers": True, "sampled": True}
        how |= {"earlier": ["m"], "evaluation": ["n"]}
        found = predictions((questions(), *tables), "mn", "n", **how)
        assert found["confidence"].tolist() == pytest.approx(values), function

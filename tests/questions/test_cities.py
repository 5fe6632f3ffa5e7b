"""Facts and questions of the atlas study, groups of them, and answers of edited ones."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from prepare_atlas import prepare_atlas

from atlas.cities import QUESTION_FORMS, SplitError, load_facts, split_questions, unambiguous
from persistcal.questions.labels import normalise_answer
from persistcal.questions.question_list import deal, edit_answers, group_facts
from persistcal.store import artifacts


@pytest.fixture(scope="module")
def facts():
    return load_facts()


@pytest.fixture(scope="module")
def by_question(facts):
    return {fact.question: fact for fact in facts}


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which country is Chicago in?", ["United States", "USA", "U.S.", "America"]),
        ("Which country is Glasgow in?", ["United Kingdom", "UK", "Great Britain", "GBR"]),
        ("Which country is Rotterdam in?", ["Netherlands", "The Netherlands", "Holland"]),
        ("Which country is Abidjan in?", ["Ivory Coast", "Côte d'Ivoire"]),
        ("What is the capital of China?", ["Beijing", "Peking"]),
        ("What is the capital of Colombia?", ["Bogota", "Bogotá"]),
        ("What is the capital of the United States?", ["Washington", "Washington, D.C."]),
        ("What is the currency of Japan?", ["Yen", "JPY"]),
        ("Which continent is Peru in?", ["South America"]),
    ],
)
def test_accepted_answers(by_question, question, answers):
    fact = by_question[question]
    assert {fact.answer, *fact.aliases} >= set(answers)


def test_what_is_not_asked_or_accepted(by_question):
    # London: 9.0 million in the UK against 0.42 in Canada. Newcastle: 0.51 million
    # in Australia against 0.40 in South Africa. Valencia: Spain and Venezuela. Delft has
    # 95,060 people, fewer than the 300,000 from which on cities are asked for.
    assert by_question["Which country is London in?"].answer == "United Kingdom"
    assert "England" not in by_question["Which country is London in?"].aliases
    for name in ("Newcastle", "Valencia", "Delft"):
        assert f"Which country is {name} in?" not in by_question
    assert "What is the capital of Serbia and Montenegro?" not in by_question
    assert "What is the capital of Serbia?" in by_question


def test_unambiguous():
    cities = [
        ("Leon", "MX", 1000, 1),
        ("León", "ES", 101, 2),  # 1000 < 10 * 101: dropped
        ("York", "GB", 1000, 3),
        ("York", "US", 100, 4),  # 1000 = 10 * 100: the British one
        ("Bo", "SL", 50, 5),
        ("Bo", "SL", 40, 6),  # twice in one country: no question of which one
    ]
    names = ["name", "countrycode", "population", "geonameid"]
    rows = [dict(zip(names, city, strict=True)) for city in cities]
    kept, resolved, dropped = unambiguous(rows, dominance=10)
    assert [c["geonameid"] for c in kept] == [3, 5]
    assert (resolved, dropped) == (1, 1)


def test_every_question_is_asked_once(facts):
    assert len({fact.question for fact in facts}) == len(facts)
    assert len({fact.question_id for fact in facts}) == len(facts)
    assert all(fact.answer.strip() == fact.answer != "" for fact in facts)
    assert all(fact.answer not in fact.aliases for fact in facts)


def test_weights_follow_population(facts, by_question):
    for relation in QUESTION_FORMS:
        weights = [f.weight for f in facts if f.relation == relation]
        assert np.mean(weights) == pytest.approx(1)
    # Shanghai has 24,874,500 people, Beijing 18,960,744: (24.8745 / 18.960744)^0.6 = 1.1769.
    shanghai = by_question["Which country is Shanghai in?"].weight
    beijing = by_question["Which country is Beijing in?"].weight
    assert shanghai / beijing == pytest.approx(1.1769, abs=1e-4)


def test_splits():
    sizes = {"n_few_shot": 2, "n_train": 5, "n_test": 6}
    order, splits = split_questions(20, **sizes, seed=3)
    assert sorted(order) == list(range(20))
    assert list(splits) == ["few_shot"] * 2 + ["train"] * 5 + ["test"] * 6 + ["unused"] * 7
    assert (split_questions(20, **sizes, seed=3)[0] == order).all()
    assert (split_questions(20, **sizes, seed=4)[0] != order).any()
    said = r"n_few_shot \+ n_train \+ n_test = 21.*lower n_train"
    with pytest.raises(SplitError, match=said):
        split_questions(20, **{**sizes, "n_test": 14}, seed=3)


# Groups and edits ------------------------------------------------------------------------

SIZES = {"n_few_shot": 3, "n_train": 20, "n_test": 30, "seed": 17, "min_city_population": 10**6}
SHARES = {"new": 0.1, "forget": 0.2, "edited": 0.1}


@pytest.fixture(scope="module")
def prepared():
    """Without groups, and with: of the same facts, which take a while to load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prepare_atlas.load_facts", cache(load_facts))
        with_groups = prepare_atlas(**SIZES, groups=SHARES, edits=["tuned", "trained"])
        return prepare_atlas(**SIZES), with_groups


def many_facts():
    """Return 40 facts of a relation, by falling weight; of every four two have one answer."""
    numbers = np.arange(40)
    facts = pd.DataFrame(
        {"question_id": [f"q{n:02}" for n in numbers], "weight": 40.0 - numbers}
    )
    answer = np.where(numbers % 4 < 2, "often", numbers.astype(str))
    return facts.assign(relation="r", group="Asia", split="train", answer=answer)


def test_prepare_atlas(prepared):
    (questions, facts), _ = prepared
    artifacts.check(questions, artifacts.QUESTIONS, "questions")
    artifacts.check(facts, artifacts.FACTS, "facts")
    sizes = {"few_shot": 3, "train": 20, "test": 30}
    assert questions["split"].value_counts()[list(sizes)].to_dict() == sizes
    assert questions["index"].tolist() == list(range(len(questions)))
    assert facts["question_id"].tolist() == questions["question_id"].tolist()
    assert facts["split"].tolist() == questions["split"].tolist()
    assert (questions["references"].str[0] == facts["answer"]).all()
    assert (questions["category"] == facts["relation"]).all()
    assert (facts["category"] == facts["relation"]).all()


def test_groups_change_nothing_else(prepared):
    plain, grouped = prepared
    for table, with_groups in zip(plain, grouped, strict=True):
        own = ["category", "truths"]
        pd.testing.assert_frame_equal(
            *(t.drop(columns=own, errors="ignore") for t in (table, with_groups))
        )
    assert grouped[0]["category"].tolist() == grouped[1]["category"].tolist()


def test_every_ten_facts_in_order_of_weight_have_their_share_of_each_group():
    dealt = group_facts(many_facts(), SHARES, seed=3)
    for start in range(0, 40, 10):
        ten = pd.Series(dealt[start : start + 10]).replace("neighbour", "retain")
        assert ten.value_counts().to_dict() == {"new": 1, "forget": 2, "edited": 1, "retain": 6}
    assert (dealt != group_facts(many_facts(), SHARES, seed=4)).any()


def test_groups_are_not_the_sets_of_a_drift_of_the_same_seed():
    facts = many_facts()
    new = group_facts(facts, {"new": 0.25}, seed=3) == "new"
    assert np.bincount(deal(facts, 4, seed=3)[new]).max() < new.sum() == 10


def test_neighbours_have_an_edited_answer_and_examples_have_no_group():
    facts = many_facts()
    dealt = pd.Series(group_facts(facts, SHARES, seed=3))
    often = facts["answer"] == "often"
    assert (dealt[often] == "neighbour").sum() == (dealt[often] == "edited").sum() > 0
    assert not (dealt[~often] == "neighbour").any()
    shown = facts.assign(split="few_shot")
    assert set(group_facts(shown, SHARES, seed=3)) == {"retain"}


def test_an_edit_is_true_at_its_states_alone(prepared):
    _, (questions, facts) = prepared
    edited = facts["category"] == "edited"
    assert questions["truths"].notna().tolist() == edited.tolist()
    by_relation = questions.groupby(facts["relation"])["references"].agg(list)
    for row in questions.index[edited]:
        truths = json.loads(questions.at[row, "truths"])
        assert list(truths) == ["tuned", "trained"]
        assert truths["tuned"] == truths["trained"]
        assert truths["tuned"] in list(map(list, by_relation[facts.at[row, "relation"]]))
        old = set(map(normalise_answer, questions.at[row, "references"]))
        assert old.isdisjoint(map(normalise_answer, truths["tuned"]))


def test_an_edit_is_no_other_name_of_the_old_answer():
    facts = pd.DataFrame({"question_id": list("abcd"), "relation": "currency"})
    facts["category"] = ["edited", "retain", "retain", "edited"]
    references = pd.Series([["Dollar", "USD"], ["dollar", "CAD"], ["Buck", "USD"], ["Yen"]])
    for seed in range(20):
        truths = edit_answers(facts, references, ["after"], seed=seed)
        assert json.loads(truths[0]) == {"after": ["Yen"]}
        assert json.loads(truths[3])["after"][0] != "Yen"
        assert truths[[1, 2]].isna().all()

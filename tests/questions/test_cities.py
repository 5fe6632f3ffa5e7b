"""Questions of the atlas study: facts about cities, groups of facts, edited answers."""

import json

import numpy as np
import pandas as pd
import pytest
from prepare_atlas import prepare_atlas

from atlas.cities import QUESTION_FORMS, load_facts, split_questions, unambiguous
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
def test_common_names_of_an_answer_are_accepted(by_question, question, answers):
    fact = by_question[question]
    assert {fact.answer, *fact.aliases} >= set(answers)


def test_small_cities_and_ambiguous_names_are_not_asked(by_question):
    # London: 9.0 million in the UK against 0.42 in Canada. Newcastle: 0.51 million
    # in Australia against 0.40 in South Africa. Valencia: Spain and Venezuela. Delft has
    # 95,060 people, and the smallest cities have 300,000.
    assert by_question["Which country is London in?"].answer == "United Kingdom"
    assert "England" not in by_question["Which country is London in?"].aliases
    for name in ("Newcastle", "Valencia", "Delft"):
        assert f"Which country is {name} in?" not in by_question
    assert "What is the capital of Serbia and Montenegro?" not in by_question
    assert "What is the capital of Serbia?" in by_question


def test_a_city_name_is_asked_if_one_city_is_ten_times_the_others():
    cities = [
        ("Leon", "MX", 1000, 1),
        ("León", "ES", 101, 2),  # 1000 < 10 * 101: ambiguous
        ("York", "GB", 1000, 3),
        ("York", "US", 100, 4),  # 1000 = 10 * 100: the British one
        ("Bo", "SL", 50, 5),
        ("Bo", "SL", 40, 6),  # the same country: the answer is clear
    ]
    names = ["name", "countrycode", "population", "geonameid"]
    rows = [dict(zip(names, city, strict=True)) for city in cities]
    kept, resolved, dropped = unambiguous(rows, dominance=10)
    assert [c["geonameid"] for c in kept] == [3, 5]
    assert (resolved, dropped) == (1, 1)


def test_facts_have_unique_questions_and_trimmed_answers(facts):
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


def test_questions_are_drawn_into_splits_by_the_seed():
    sizes = {"n_few_shot": 2, "n_train": 5, "n_test": 6}
    order, splits = split_questions(20, **sizes, seed=3)
    assert sorted(order) == list(range(20))
    assert list(splits) == ["few_shot"] * 2 + ["train"] * 5 + ["test"] * 6 + ["unused"] * 7
    assert (split_questions(20, **sizes, seed=3)[0] == order).all()
    assert (split_questions(20, **sizes, seed=4)[0] != order).any()
    message = r"n_few_shot \+ n_train \+ n_test is 21.*lower n_train"
    with pytest.raises(ValueError, match=message):
        split_questions(20, **{**sizes, "n_test": 14}, seed=3)


SIZES = {
    "n_few_shot": 3,
    "n_train": 20,
    "n_test": 30,
    "seed": 17,
    "min_city_population": 300_000,
}
SHARES = {"new": 0.1, "forget": 0.2, "edited": 0.1}


@pytest.fixture(scope="module")
def atlas_tables(facts):
    """Return questions and facts without groups, and with groups; loading facts is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prepare_atlas.load_facts", lambda min_city_population: facts)
        with_groups = prepare_atlas(**SIZES, groups=SHARES, edits=["tuned", "trained"])
        return prepare_atlas(**SIZES), with_groups


def ranked_facts():
    """Return 40 facts of a relation by falling weight; two of every four share an answer."""
    numbers = np.arange(40)
    facts = pd.DataFrame({"question_id": [f"q{n:02}" for n in numbers], "weight": 40 - numbers})
    answer = np.where(numbers % 4 < 2, "often", numbers.astype(str))
    return facts.assign(relation="r", group="Asia", split="train", answer=answer)


def test_questions_and_facts_of_atlas_agree(atlas_tables):
    (questions, facts), _ = atlas_tables
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


def test_groups_change_only_categories_and_truths(atlas_tables):
    plain, grouped = atlas_tables
    for table, table_with_groups in zip(plain, grouped, strict=True):
        group_columns = ["category", "truths"]
        pd.testing.assert_frame_equal(
            table.drop(columns=group_columns, errors="ignore"),
            table_with_groups.drop(columns=group_columns, errors="ignore"),
        )
    assert grouped[0]["category"].tolist() == grouped[1]["category"].tolist()


def test_groups_take_their_share_at_every_level_of_popularity():
    dealt = group_facts(ranked_facts(), SHARES, seed=3)
    for start in range(0, 40, 10):
        ten = pd.Series(dealt[start : start + 10]).replace("neighbour", "retain")
        assert ten.value_counts().to_dict() == {"new": 1, "forget": 2, "edited": 1, "retain": 6}
    assert (dealt != group_facts(ranked_facts(), SHARES, seed=4)).any()


def test_groups_and_sets_of_facts_with_the_same_seed_are_independent():
    facts = ranked_facts()
    new = group_facts(facts, {"new": 0.25}, seed=3) == "new"
    assert np.bincount(deal(facts, 4, seed=3)[new]).max() < new.sum() == 10


def test_neighbours_share_an_edited_answer_and_few_shot_examples_have_no_group():
    facts = ranked_facts()
    dealt = pd.Series(group_facts(facts, SHARES, seed=3))
    is_frequent = facts["answer"] == "often"
    assert (
        (dealt[is_frequent] == "neighbour").sum() == (dealt[is_frequent] == "edited").sum() > 0
    )
    assert not (dealt[~is_frequent] == "neighbour").any()
    assert set(group_facts(facts.assign(split="few_shot"), SHARES, seed=3)) == {"retain"}


def test_an_edited_answer_is_true_only_at_the_listed_checkpoints(atlas_tables):
    _, (questions, facts) = atlas_tables
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


def test_an_edited_answer_is_not_another_name_of_the_old_answer():
    facts = pd.DataFrame({"question_id": list("abcd"), "relation": "currency"})
    facts["category"] = ["edited", "retain", "retain", "edited"]
    references = pd.Series([["Dollar", "USD"], ["dollar", "CAD"], ["Buck", "USD"], ["Yen"]])
    for seed in range(20):
        truths = edit_answers(facts, references, ["after"], seed=seed)
        assert json.loads(truths[0]) == {"after": ["Yen"]}
        assert json.loads(truths[3])["after"][0] != "Yen"
        assert truths[[1, 2]].isna().all()

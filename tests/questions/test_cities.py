"""Facts and questions of the atlas study."""

import numpy as np
import pytest
from prepare_atlas import prepare_atlas

from persistcal.questions.cities import (
    QUESTION_FORMS,
    SplitError,
    load_facts,
    split_questions,
    unambiguous,
)
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


def city(name, country, population, identifier):
    return {
        "name": name,
        "countrycode": country,
        "population": population,
        "geonameid": identifier,
    }


def test_unambiguous():
    cities = [
        city("Leon", "MX", 1000, 1),
        city("León", "ES", 101, 2),  # 1000 < 10 * 101: dropped
        city("York", "GB", 1000, 3),
        city("York", "US", 100, 4),  # 1000 = 10 * 100: the British one
        city("Bo", "SL", 50, 5),
        city("Bo", "SL", 40, 6),  # twice in one country: no question of which one
    ]
    kept, resolved, dropped = unambiguous(cities, dominance=10)
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


def test_prepare_atlas():
    sizes = {"few_shot": 5, "train": 20, "test": 30}
    questions, facts = prepare_atlas(
        **{f"n_{split}": n for split, n in sizes.items()}, seed=17, min_city_population=10**6
    )
    artifacts.check(questions, artifacts.QUESTIONS, "questions")
    artifacts.check(facts, artifacts.FACTS, "facts")
    assert questions["split"].value_counts()[list(sizes)].to_dict() == sizes
    assert questions["index"].tolist() == list(range(len(questions)))
    assert facts["question_id"].tolist() == questions["question_id"].tolist()
    assert facts["split"].tolist() == questions["split"].tolist()
    assert (questions["references"].str[0] == facts["answer"]).all()

"""Facts about chemical elements."""

import numpy as np
import pytest
from prepare_elements import prepare_elements

from atlas.elements import QUESTION_FORMS, family, load_facts, period_and_group
from persistcal.store import artifacts


def test_facts_are_those_of_the_periodic_table():
    facts = {fact.question: fact for fact in load_facts()}
    answers = {
        "What is the chemical symbol of gold?": "Au",
        "Which element has the symbol W?": "tungsten",
        "What is the atomic number of uranium?": "92",
        "Which block is helium in?": "s-block",
        "Which block is lead in?": "p-block",
        "Which block is lutetium in?": "d-block",
        "Which block is ytterbium in?": "f-block",
        "Which period is chlorine in?": "3",
        "Which group is chlorine in?": "17",
        "What crystal structure does copper have?": "face-centered cubic",
    }
    assert {question: facts[question].answer for question in answers} == answers
    assert facts["Which element has the symbol Al?"].aliases == ("aluminium",)
    assert "What crystal structure does oxygen have?" not in facts
    assert "Which group is uranium in?" not in facts
    assert not any("neutron" in question for question in facts)


def test_facts_are_unique_and_cover_every_relation():
    facts = load_facts()
    assert len({fact.question_id for fact in facts}) == len(facts)
    assert len({fact.question for fact in facts}) == len(facts)
    # 28 lanthanides and actinides have no group: 57 to 70 and 89 to 102.
    smaller_relations = {"element-structure": 84, "element-group": 90}
    for relation in QUESTION_FORMS:
        count = sum(fact.relation == relation for fact in facts)
        assert count == smaller_relations.get(relation, 118)


def test_periods_and_groups_are_those_of_the_periodic_table():
    # A row per period and a column per group; elements without a group follow below.
    table = """
        H . . . . . . . . . . . . . . . . He
        Li Be . . . . . . . . . . B C N O F Ne
        Na Mg . . . . . . . . . . Al Si P S Cl Ar
        K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr
        Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe
        Cs Ba Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn
        Fr Ra Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og
    """
    expected = {
        symbol: (period, group)
        for period, row in enumerate(table.strip().split("\n"), start=1)
        for group, symbol in enumerate(row.split(), start=1)
    }
    expected |= dict.fromkeys("La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb".split(), (6, None))
    expected |= dict.fromkeys("Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No".split(), (7, None))
    symbols = {
        fact.question_id.removeprefix("element-symbol-"): fact.answer
        for fact in load_facts()
        if fact.relation == "element-symbol"
    }
    positions = {symbol: period_and_group(int(number)) for number, symbol in symbols.items()}
    assert positions == {symbol: place for symbol, place in expected.items() if symbol != "."}


def test_weights_fall_with_the_atomic_number_and_average_one():
    weights = [fact.weight for fact in load_facts() if fact.relation == "element-symbol"]
    assert np.mean(weights) == pytest.approx(1)
    assert weights[0] / weights[31] == pytest.approx(16)  # 32 ** 0.8 = 2 ** 4


def test_families_of_elements_have_the_right_sizes():
    families = [family(number) for number in range(1, 119)]
    assert families.count("Lanthanides and actinides") == 30
    assert families.count("Transition metals") == 38  # four rows of ten, less La and Ac
    assert {family(number) for number in (1, 56, 81, 86, 113, 118)} == {"Main group"}


def test_questions_and_facts_of_elements_agree():
    questions, facts = prepare_elements(n_few_shot=5, n_test=600, seed=17)
    artifacts.check(questions, artifacts.QUESTIONS, "questions")
    artifacts.check(facts, artifacts.FACTS, "facts")
    sizes = {"test": 600, "unused": 159, "few_shot": 5}
    assert questions["split"].value_counts().to_dict() == sizes
    for name in ("question_id", "split"):
        assert facts[name].tolist() == questions[name].tolist()
    assert questions["references"].str[0].tolist() == facts["answer"].tolist()

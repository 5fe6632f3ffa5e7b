"""Groups of equivalent answers, and the cache of the entailment model's replies."""

import itertools
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistcal.answers.clusters import open_equivalence
from persistcal.answers.entailment import EntailmentCache
from persistcal.answers.equivalence import (
    FORMS,
    MutualEntailment,
    Pair,
    group_answers,
)
from persistcal.confidence.estimators.meaning import surrogate_confidences
from persistcal.questions.labels import normalise

# After normalisation the first three are identical, and the next two.
ANSWERS = ["Oslo", "oslo.", "OSLO", "Bergen", "bergen.", "Norway", "a town", "the capital"]
DIRECTED = list(itertools.permutations(ANSWERS, 2))


class ScriptedModel:
    """A model that entails the given (question, one, other), and records its inputs."""

    def __init__(self, entailed):
        self.yes, self.asked, self.calls = set(entailed), [], 0

    def __call__(self, pairs):
        self.calls += 1
        self.asked += pairs
        return [pair in self.yes for pair in pairs]


def naive_groups(question, answers, entailed):
    """Compare all pairs in both directions; a group is all answers that are reachable."""

    def are_equivalent(first, second):
        return normalise(first) == normalise(second) or (
            (question, first, second) in entailed and (question, second, first) in entailed
        )

    n = len(answers)
    reach = [
        [i == j or are_equivalent(answers[i], answers[j]) for j in range(n)] for i in range(n)
    ]
    for k, i, j in itertools.product(range(n), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    return {frozenset(answers[j] for j in range(n) if row[j]) for row in reach}


# Dense, so that cycles, chains and one-way arrows are common.
graphs = st.fixed_dictionaries(
    {
        question: st.tuples(
            st.lists(st.sampled_from(ANSWERS), unique=True),
            st.one_of(
                st.sets(st.sampled_from(DIRECTED)),
                st.sets(st.sampled_from(DIRECTED), min_size=30),
            ),
        )
        for question in ("Where?", "What?", "Which?")
    }
)


@given(graphs)
def test_groups_equal_those_of_comparing_all_pairs_in_both_directions(questions):
    entailed = {(q, *pair) for q, (_, links) in questions.items() for pair in links}
    model = ScriptedModel(entailed)
    asked = [(question, answers) for question, (answers, _) in questions.items()]
    groups = group_answers(asked, MutualEntailment(model))
    for (question, answers), group in zip(asked, groups, strict=True):
        sets = {}
        for answer, number in zip(answers, group, strict=True):
            sets.setdefault(number, set()).add(answer)
        assert {*map(frozenset, sets.values())} == naive_groups(question, answers, entailed)

    assert len(model.asked) == len(set(model.asked))
    for pair in model.asked:
        assert normalise(pair.one) != normalise(pair.other)
        if pair.one > pair.other:  # the second direction
            assert Pair(pair.question, pair.other, pair.one) in entailed


def test_answers_of_one_group_are_not_compared_again():
    all_pairs = {("?", *pair) for pair in itertools.permutations("abcd", 2)}
    model = ScriptedModel(all_pairs)
    assert group_answers([("?", "abcd")], MutualEntailment(model)) == [[0, 0, 0, 0]]
    # a with each other answer, in both directions; never b with c, b with d or c with d
    assert len(model.asked) == 2 * 3
    # one-way arrows between c and the group of a and b: a-b twice, then c with a and with b
    model = ScriptedModel({("?", "a", "b"), ("?", "b", "a"), ("?", "c", "a"), ("?", "c", "b")})
    assert group_answers([("?", "abc")], MutualEntailment(model)) == [[0, 0, 2]]
    assert len(model.asked) == 2 + 1 + 1


def test_pairs_of_all_questions_are_compared_in_the_same_calls():
    model = ScriptedModel(set())
    group_answers([(str(n), "abcd") for n in range(50)], MutualEntailment(model))
    assert len(model.asked) == 50 * 6
    # three rounds, from a, b and c, each in two directions; the second has no pairs
    assert model.calls == 2 * 3


def open_cache(folder, model, answers="abcd", questions=("?",)):
    return EntailmentCache(folder, model, questions=questions, answers=answers)


def test_the_cache_asks_the_model_only_about_new_pairs(tmp_path):
    pairs = [Pair("?", "a", "b"), Pair("?", "b", "a"), Pair("?", "a", "b")]
    model = ScriptedModel({("?", "a", "b")})
    with open_cache(tmp_path, model) as cache:
        assert cache(pairs) == [True, False, True]
        assert cache([*pairs, Pair("?", "a", "c")]) == [True, False, True, False]
    assert model.asked == [*pairs[:2], Pair("?", "a", "c")]

    silent_model = ScriptedModel(set())
    with open_cache(tmp_path, silent_model) as cache:
        assert cache([*pairs, Pair("?", "a", "c")]) == [True, False, True, False]
        assert not silent_model.asked
        # the same answers to another question
        assert cache([Pair("Where?", "a", "b")]) == [False]
    assert silent_model.asked == [Pair("Where?", "a", "b")]


def test_two_jobs_share_the_cache_and_a_damaged_file_is_ignored(tmp_path, caplog):
    first = open_cache(tmp_path, ScriptedModel({("?", "a", "b")}))
    with first, open_cache(tmp_path, ScriptedModel([])) as second:
        assert first([Pair("?", "a", "b")]) == [True]
        assert second([Pair("?", "c", "d")]) == [False]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    silent_model = ScriptedModel([])
    with open_cache(tmp_path, silent_model) as third_job:
        assert third_job([Pair("?", "a", "b"), Pair("?", "c", "d")]) == [True, False]
    assert not silent_model.asked
    assert "broken.parquet" in caplog.text
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_job_keeps_its_replies(tmp_path, monkeypatch):
    monkeypatch.setattr("persistcal.answers.entailment.PART_ROWS", 2)

    class Failing(ScriptedModel):
        def __call__(self, pairs):
            if len(self.asked) == 4:
                raise RuntimeError("out of memory")
            return super().__call__(pairs)

    pairs = [Pair("?", *pair) for pair in itertools.permutations("abcd", 2)]
    with (
        pytest.raises(RuntimeError, match="out of memory"),
        open_cache(tmp_path, Failing([])) as c,
    ):
        c(pairs)
    # two files of two rows were written before the error
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    model = ScriptedModel([])
    with open_cache(tmp_path, model) as cache:
        cache(pairs)
    assert model.asked == pairs[4:]


def test_the_cache_reads_only_pairs_of_its_questions_and_answers(tmp_path):
    with open_cache(tmp_path, ScriptedModel([])) as cache:
        cache([Pair("?", *pair) for pair in itertools.permutations("abcd", 2)])
    model = ScriptedModel([])
    with open_cache(tmp_path, model, answers="ab") as cache:
        cache([Pair("?", "a", "b"), Pair("?", "c", "d")])
    assert model.asked == [Pair("?", "c", "d")]


def test_lexical_equivalence_does_not_import_torch():
    code = (
        "import sys, cluster_answers, estimate_confidences;"
        "from persistcal.confidence.estimators import meaning, probabilities;"
        "from persistcal.confidence.estimators import replies;"
        "sys.exit('torch' in sys.modules)"
    )
    path = {"PYTHONPATH": ".:workflow/scripts/answers:workflow/scripts/confidences"}
    assert subprocess.run([sys.executable, "-c", code], env=path).returncode == 0


def test_identical_answers_are_compared_without_case_and_full_stops():
    settings = {"backend": "identical"}
    texts = ["U.S.", "us", "3.5", "35", "The US"]
    with open_equivalence(
        settings, "", "quiz", questions=[], answers=[], threads=1
    ) as equivalent:
        assert group_answers([("?", texts)], equivalent) == [[0, 0, 2, 2, 4]]


@pytest.mark.parametrize(
    ("form", "groups"), [("numbers", [0, 1, 2, 2, 2]), ("released", [0, 0, 2, 3, 2])]
)
def test_the_form_of_answers_decides_which_the_model_compares(form, groups):
    texts = ["3.5", "35", "a  b", "a b", "A.  b"]
    model = ScriptedModel({("?", "a b", "A.  b")})  # one direction
    equivalent = MutualEntailment(model, FORMS[form])
    assert group_answers([("?", texts)], equivalent) == [groups]
    asked = {frozenset(pair[1:]) for pair in model.asked}
    assert (frozenset(["3.5", "35"]) in asked) == (form == "numbers")
    assert (frozenset(["a  b", "a b"]) in asked) == (form == "released")
    candidates = pd.DataFrame({"question_id": ["q"], "probability": [0.7], "members": [["35"]]})
    said = pd.DataFrame({"question_id": ["q"], "question": "?", "answer": ["3.5"]})
    mass = surrogate_confidences(said, candidates, equivalent).tolist()
    assert mass == [0.7 if form == "released" else 0]

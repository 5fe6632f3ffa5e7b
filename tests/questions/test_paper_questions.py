"""Questions of TriviaQA, Jeopardy and BioASQ against slow rewrites of the same steps."""

import json
import random
from collections import Counter

import datasets
import numpy as np
import pytest
from hub_layout import write_jeopardy, write_triviaqa

from persistcal.questions import sources
from persistcal.questions.question_list import Question, check_counts, number_questions
from persistcal.questions.sources import (
    BLACKLIST,
    check_categories,
    read_bioasq,
    read_jeopardy,
    read_triviaqa,
)
from persistcal.store import artifacts
from persistcal.store.files import sha256


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    datasets.disable_progress_bars()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "datasets"))
        yield folder


def check_and_split(table):
    artifacts.check(table, artifacts.QUESTIONS, "questions")
    return table, table[table["split"] != "few_shot"], table[table["split"] == "few_shot"]


# TriviaQA

VALIDATION = [(f" Question {n % 90}?" + " " * (n % 3), f" Answer {n} ") for n in range(100)] + [
    (question, "bad") for question in sorted(BLACKLIST)
]
TRAINING = [(f"Example {n % 12}?", f"Shown {n}") for n in range(40)]


def shuffle_slowly(rows):
    """Shuffle with numpy's PCG64 generator, as `datasets` documents its own shuffling."""
    return [rows[i] for i in np.random.default_rng(17).permutation(len(rows))]


def drop_repeats(rows, text):
    return [row for i, row in enumerate(rows) if text(row) not in [text(r) for r in rows[:i]]]


def test_triviaqa_questions_equal_a_slow_rewrite_of_the_steps(folder):
    splits = {"train": TRAINING, "validation": VALIDATION, "test": [("Secret?", "<unk>")]}
    repo = write_triviaqa(folder / "trivia_qa", **splits)
    settings = {"repo": repo, "revision": "0f7faf3", "train": [0, 50], "test": [60, 93]}
    table, canonical, few_shot = check_and_split(read_triviaqa(**settings, expect={}))
    expected = drop_repeats(shuffle_slowly(VALIDATION), lambda row: row[0].strip())
    assert len(expected) == 93  # 90 different questions and 3 blacklisted ones
    assert canonical["question"].tolist() == [question.strip() for question, _ in expected]
    assert [list(r) for r in canonical["references"]] == [[a.strip()] for _, a in expected]
    assert canonical["index"].tolist() == list(range(93))
    assert canonical["question_id"].tolist() == [f"triviaqa-{n}" for n in range(93)]
    assert canonical["split"].tolist() == ["train"] * 50 + ["unused"] * 10 + ["test"] * 33
    assert set(canonical.loc[canonical["excluded"], "question"]) == BLACKLIST

    examples = drop_repeats(shuffle_slowly(TRAINING), lambda row: row[0])[:10]
    examples_read = zip(few_shot["question"], few_shot["references"].str[0], strict=True)
    assert list(examples_read) == examples
    assert few_shot["index"].tolist() == list(range(10))
    assert table["question_id"].is_unique
    assert not table["any_of"].any()

    # The three blacklisted questions are neither trained on nor tested.
    excluded = canonical.loc[canonical["excluded"], "split"].value_counts()
    kept = {name: n - excluded.get(name, 0) for name, n in (("train", 50), ("test", 33))}
    check_counts(table, {"questions": 93, **kept})
    with pytest.raises(ValueError, match=r"trivia_qa: .*questions: 93 instead of 9961.*pinned"):
        read_triviaqa(**settings, expect={**kept, "questions": 9961})


def test_aliases_of_triviaqa_are_accepted_once_per_spelling(folder):
    rows = [("Which bird?", " Eagle ", "an EAGLE!", "Erne", "the erne", "Sea-eagle")]
    examples = [(f"Example {n}?", "yes") for n in range(10)]
    repo = write_triviaqa(folder / "aliases", train=examples, validation=rows)
    settings = {"repo": repo, "revision": "0f7faf3", "train": [0, 0], "test": [0, 1]}
    [accepted] = read_triviaqa(**settings, aliases=True).query("split == 'test'")["references"]
    [without_aliases] = read_triviaqa(**settings).query("split == 'test'")["references"]
    assert (list(accepted), list(without_aliases)) == (
        ["Eagle", "Erne", "Sea-eagle"],
        ["Eagle"],
    )


def test_a_split_larger_than_the_data_is_refused():
    expected = [Question(text, ["yes"]) for text in "abc"]
    with pytest.raises(ValueError, match=r"split test ends at index 4, .* only 3 questions"):
        number_questions("x", expected, expected, train=[0, 1], test=[1, 4])
    with pytest.raises(ValueError, match="no question is left for few-shot prompts"):
        number_questions("x", expected, [], train=[0, 1], test=[1, 3])


def test_a_dataset_without_the_needed_columns_is_refused(monkeypatch):
    rows = datasets.Dataset.from_dict({"question": ["Why?"], "label": [1]})
    monkeypatch.setattr(sources, "_load", lambda *_: [rows, rows])
    with pytest.raises(ValueError, match=r"^here: .*\['answer'\] not in the dataset"):
        read_triviaqa(repo="here", revision="main", train=[0, 0], test=[0, 1])


# Jeopardy

CLUES = (
    [("SCIENCE", f"'Clue {n} of science'", f"s{n}") for n in range(160)]
    + [("SCIENCE", "'Clue 3 of science'", "again")] * 4
    + [("SCIENCE", "'A <A HREF=\"x.jpg\">picture</A>'", "media")]
    # 150 rows, but only 149 different ones: the category is too small
    + [("RIVERS", f"'Clue {min(n, 148)} of rivers'", f"r{n}") for n in range(150)]
    # 151 different clues with the last row; the one with media leaves 150, which are enough
    + [("U.S. Cities", f"'Clue {n} of cities'", f"c{n}") for n in range(149)]
    + [("U.S. Cities", "'See <a href=\"y\">this</a>'", "media")]
    + [("Before & After", f"'Clue {n} of before'", f"b{n}") for n in range(200)]
    + [("SCIENCE", t, "broken") for t in ("No quotes", "'Audio Clue is MISSING'", "'Half")]
    # "clue" and "missing" count as whole words only
    + [("SCIENCE", t, "w") for t in ("'A clueless man went missing'", "'Clue: unmissing'")]
    # the same category, with spaces around it
    + [(" U.S. Cities ", "'The last clue of cities'", "space")]
)
CATEGORIES = ["Science", "U.S. Cities"]


def filter_clues_slowly():
    rows = [row for row in shuffle_slowly(CLUES) if "<a " not in row[1].lower()]
    rows = drop_repeats(rows, lambda row: row[1].strip())
    rows = [(category.strip(), *rest) for category, *rest in rows]
    size = Counter(row[0] for row in rows)
    return [row for row in rows if size[row[0]] >= 150 and row[0] != "Before & After"]


def test_jeopardy_questions_equal_a_slow_rewrite_of_the_steps(folder):
    repo = write_jeopardy(folder / "jeopardy", CLUES)
    settings = {"repo": repo, "revision": "aebec90", "train": [0, 100], "test": [200, 305]}
    names = folder / "categories.txt"
    names.write_text("".join(f"{name}\n" for name in CATEGORIES))
    _, canonical, few_shot = check_and_split(
        read_jeopardy(categories=str(names), **settings, expect={})
    )
    kept = filter_clues_slowly()
    assert len(kept) == 160 + 150 + 5
    assert Counter(row[0] for row in kept) == {"SCIENCE": 165, "U.S. Cities": 150}
    texts = [f"[{category}] {clue}" for category, clue, _ in kept]
    assert few_shot["question"].tolist() == texts[:10]
    assert canonical["question"].tolist() == texts[10:]
    assert canonical["references"].str[0].tolist() == [answer for _, _, answer in kept[10:]]
    assert canonical["split"].tolist() == ["train"] * 100 + ["unused"] * 100 + ["test"] * 105
    excluded = {row[1] for row in kept[10:] if row[2] == "broken"}
    excluded_questions = canonical.loc[canonical["excluded"], "question"]
    assert {q.split("] ", 1)[1] for q in excluded_questions} == excluded != set()

    names.write_text("u.s. cities\nZoology\n")
    message = r"jeopardy: .*also \['SCIENCE'\], and lacks \['Zoology'\]"
    with pytest.raises(ValueError, match=message):
        read_jeopardy(categories=str(names), **settings, expect={})
    names.write_text("".join(f"{name}\n" for name in CATEGORIES))
    with pytest.raises(ValueError, match=r"jeopardy: .*questions: 305 instead of 9"):
        read_jeopardy(categories=str(names), **settings, expect={"questions": 9})


def test_categories_of_jeopardy_are_compared_without_case(request):
    path = request.config.rootpath / "resources/paper/jeopardy_categories.txt"
    names = path.read_text().splitlines()
    assert len(names) == 85
    check_categories([name.upper() for name in names], names)
    with pytest.raises(ValueError, match=r"also \[\], and lacks \['Zoology'\]"):
        check_categories(names[:-1], names)


# BioASQ


def entry(number, body, kind, exact_answer):
    return {"id": f"id{number}", "body": body, "type": kind, "exact_answer": exact_answer}


FACTOIDS = [entry(n, f"Which gene is {n}?", "factoid", [f"G{n}"]) for n in range(8)] + [
    entry(20, "Name the receptor", "factoid", ["FGFR3", "CD333"]),
    entry(21, " Name the kinase. ", "factoid", "ABL1"),
    entry(22, "Which gene is 3?", "factoid", ["twice"]),
]
LISTS = [
    entry(n, f"List set {n}", "list", [[f"a{n}", f"b{n}"], [f"c{n}"]]) for n in range(30, 37)
]
LISTS += [
    entry(40, "List eleven things.", "list", [[str(n)] for n in range(11)]),
    entry(41, "List ten things.", "list", [[str(n)] for n in range(10)]),
]
NOT_ASKED = [entry(50, "Is it so?", "yesno", "yes"), entry(51, "Say more.", "summary", None)]
ENTRIES = [e for pair in zip(FACTOIDS, [*LISTS, *NOT_ASKED], strict=True) for e in pair]


@pytest.fixture
def bioasq(tmp_path):
    def prepare(entries, expect=()):
        (tmp_path / "training14b.json").write_text(json.dumps({"questions": entries}))
        path = str(tmp_path / "training14b.json")
        questions = read_bioasq(file=path, expect=dict(expect))
        assert questions.attrs["sources"] == {path: sha256(path)}
        return check_and_split(questions)

    return prepare


def first_answer(row):
    answer = row["exact_answer"]
    while not isinstance(answer, str):
        answer = answer[0]
    return answer


def test_bioasq_questions_equal_a_slow_rewrite_of_the_steps(bioasq):
    # 10 different factoids minus 5 examples; 8 lists of at most 10 groups minus 5 examples
    counts = {"questions": 8, "test": 8, "factoid": 5, "list": 3}
    _, canonical, few_shot = bioasq(ENTRIES, counts)
    order = list(range(len(ENTRIES)))
    random.Random(17).shuffle(order)
    rows = drop_repeats([ENTRIES[i] for i in order], lambda row: row["body"].strip())
    factoids = [row for row in rows if row["type"] == "factoid"]
    lists = [row for row in rows if row["type"] == "list" and len(row["exact_answer"]) <= 10]
    assert few_shot["category"].tolist() == ["factoid"] * 5 + ["list"] * 5
    examples = [first_answer(row) for row in factoids[:5] + lists[:5]]
    assert few_shot["references"].str[0].tolist() == examples
    rest = [row for row in rows if row in factoids[5:] + lists[5:]]
    assert canonical["references"].str[0].tolist() == [first_answer(row) for row in rest]
    assert set(canonical["split"]) == {"test"}
    assert canonical["index"].tolist() == list(range(8))


def test_bioasq_questions_get_punctuation_a_request_and_all_references(bioasq):
    table, _, _ = bioasq(ENTRIES)
    by_text = table.set_index("question")
    request = " Just output one of the answers."
    references = {text: list(row["references"]) for text, row in by_text.iterrows()}
    assert references["Name the receptor?"] == ["FGFR3", "CD333"]  # no mark at all: "?"
    assert references["Name the kinase."] == ["ABL1"]
    assert references[f"List set 30.{request}"] == ["a30", "b30", "c30"]  # groups in order
    assert references[f"List ten things.{request}"] == [str(n) for n in range(10)]
    assert f"List eleven things.{request}" not in references
    assert by_text["any_of"]["Name the receptor?"]
    assert not by_text["any_of"]["Which gene is 1?"]
    assert by_text["any_of"][f"List set 30.{request}"]


def test_a_missing_bioasq_file_is_refused_with_its_download_page(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json: .*participants-area.*14b.*file"):
        read_bioasq(file=str(tmp_path / "none.json"), expect={})


def test_bioasq_data_of_another_size_or_without_answers_is_refused(bioasq):
    with pytest.raises(ValueError, match=r"training14b.json: .*factoid: 5 instead of 1690"):
        bioasq(ENTRIES, {"questions": 2719, "factoid": 1690, "list": 1029})
    for answer in ([], [["", " "]]):
        with pytest.raises(ValueError, match=r"'id99' \('Which\?'\) has no exact answer"):
            bioasq([*ENTRIES, entry(99, "Which?", "factoid", answer)])


def test_a_json_file_without_questions_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"documents": []}')
    with pytest.raises(ValueError, match=r"x\.json: the key 'questions' is missing"):
        read_bioasq(file=str(tmp_path / "x.json"), expect={})


def test_a_changed_folder_of_questions_is_read_again(tmp_path):
    def answers(answer):
        examples = [(f"Example {n}?", "yes") for n in range(10)]
        rows = [("Which river?", answer)]
        repo = write_triviaqa(tmp_path / "trivia_qa", train=examples, validation=rows)
        questions = read_triviaqa(repo=repo, revision="main", train=[0, 0], test=[0, 1])
        [references] = questions.query("split == 'test'")["references"]
        return list(references)

    assert answers("Nile") == ["Nile"]
    assert answers("Congo") == ["Congo"]

"""Files of a user's questions: read exactly, or refused with a reason."""

import csv
import gzip
import io
import json
import logging

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_rows import read_content

from persistcal.questions.sources import KNOWN, read_own_questions, tidy_questions
from persistcal.store import artifacts

NO_DRAW = {"n_few_shot": 0, "n_train": 0, "n_test": 0, "seed": 0}
COLUMNS = ["question", "answers", "id", "category", "split"]
ROWS = [
    {"question": " Capital of Peru? ", "answers": "Lima", "split": "few_shot"},
    {"question": "Colour of snow?", "answers": ["white", " White "], "split": "train"},
    {"question": "007?", "answers": "1.0", "split": "test"},
]


def read_cells(content, kind=".csv"):
    return read_content(content, kind, KNOWN).to_dict("records")


def read(path, content=None, **settings):
    """Read a file of questions; write it first if its content is given."""
    if content is not None:
        path.write_bytes(content)
    table = read_own_questions(file=str(path), **{**NO_DRAW, "least": {}, **settings})
    artifacts.check(table, artifacts.QUESTIONS, "questions")
    return table


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


# Any character that a file can contain. Line breaks and the spaces around a text are not
# kept.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(str.strip)
ANSWERS = TEXTS.filter(bool)


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[TEXTS] * 5), min_size=1, max_size=5),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_csv_of_any_dialect_is_read_exactly(rows, delimiter, end, encoding, quoting, zipped):
    """Rows without any text, as spreadsheets write them, are left out."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([COLUMNS, *rows])
    content = text.getvalue().encode(encoding)
    assert read_cells(gzip.compress(content, mtime=0) if zipped else content) == [
        dict(zip(COLUMNS, row, strict=True)) for row in rows if any(map(str.strip, row))
    ]


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(TEXTS.filter(bool), st.lists(ANSWERS, min_size=1), min_size=1, max_size=5),
    st.booleans(),
)
def test_jsonl_is_read_exactly(accepted, ascii_only):
    rows = [{"question": q, "answers": a, "split": "test"} for q, a in accepted.items()]
    content = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows).encode()
    table = tidy_questions(read_content(content, ".jsonl", KNOWN), **NO_DRAW)
    assert dict(zip(table["question"], table["references"], strict=True)) == accepted


@settings(deadline=None)
@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_a_json_file_are_read_as_they_are_spelled(numbers):
    lines = [f'{{"answers": {json.dumps(number)}}}' for number in numbers]
    rows = read_cells("\n".join(lines).encode(), ".jsonl")
    assert [row["answers"] for row in rows] == [json.dumps(number) for number in numbers]


@settings(deadline=None)
@given(
    st.binary(max_size=60)
    | st.text('question,answers;\t"\n\r{}[]:1\0\ufeff\ud800', max_size=60).map(
        lambda text: text.encode(errors="surrogatepass")
    ),
    st.sampled_from([".csv", ".jsonl", ".parquet"]),
)
def test_any_other_file_is_refused_with_a_sentence(content, kind):
    try:
        tidy_questions(read_content(content, kind, KNOWN), **NO_DRAW)
    except ValueError as error:
        assert str(error)


def test_whole_numbers_stay_whole_next_to_other_numbers(tmp_path):
    content = (
        b'{"question": 1, "answers": 5, "id": 7, "split": "test"}\n'
        b'{"question": 2, "answers": [2.50, 1e3, true, -0], "id": 8, "split": "test"}\n'
    )
    table = read(tmp_path / "q.jsonl", content)
    assert table["question_id"].tolist() == ["7", "8"]
    assert list(map(list, table["references"])) == [["5"], ["2.50", "1e3", "true", "-0"]]


def test_parquet_keeps_whole_numbers_and_refuses_fractions(tmp_path):
    frame = pd.DataFrame({"question": ["a", "b"], "answers": ["x", "y"], "split": "test"})
    frame["category"] = pd.array([7, None], dtype="Int64")
    frame.to_parquet(tmp_path / "q.parquet")
    assert read(tmp_path / "q.parquet")["category"].tolist() == ["7", ""]
    frame.assign(answers=[5.0, 2.5]).to_parquet(tmp_path / "q.parquet")
    with pytest.raises(ValueError, match=r"'answers' of row 1 is the fraction 5\.0, .* as tex"):
        read(tmp_path / "q.parquet")


def test_questions_with_one_or_several_answers_become_a_table(tmp_path):
    table = read(tmp_path / "q.jsonl", jsonl(ROWS))
    assert table["question"].tolist() == ["Capital of Peru?", "Colour of snow?", "007?"]
    assert table["references"].tolist() == [["Lima"], ["white", "White"], ["1.0"]]
    assert table["any_of"].tolist() == [False, True, False]
    assert table["split"].tolist() == ["few_shot", "train", "test"]
    assert table["index"].tolist() == [0, 1, 2]
    assert table["question_id"].tolist() == ["1", "2", "3"]
    lists = pd.DataFrame(ROWS).assign(answers=table["references"].tolist())
    lists.to_parquet(tmp_path / "q.parquet")
    assert read(tmp_path / "q.parquet").equals(table)


def test_numbers_and_na_in_a_csv_file_stay_text(tmp_path):
    content = b'question,answers,id,category,split\n"Agent, number?",007,x1,spies,test\n'
    table = read(tmp_path / "q.csv", content + b"NA?,NA,x2,,train\n")
    assert table["question"].tolist() == ["Agent, number?", "NA?"]
    assert table["references"].tolist() == [["007"], ["NA"]]
    assert table["question_id"].tolist() == ["x1", "x2"]
    assert table["category"].tolist() == ["spies", ""]


def test_the_same_questions_are_drawn_from_each_file_format(tmp_path):
    rows = [{"question": f"Q{n}?", "answers": f"a{n}"} for n in range(8)]
    (tmp_path / "a.jsonl").write_bytes(jsonl(rows))
    pd.DataFrame(rows).to_csv(tmp_path / "b.csv", index=False)
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    sizes = {"few_shot": 1, "train": 3, "test": 2}
    draw = {f"n_{split}": n for split, n in sizes.items()}
    first, *frames = (
        read(tmp_path / name, **draw, seed=5) for name in ("a.jsonl", "b.csv", "c.parquet")
    )
    assert all(frame.equals(first) for frame in frames)
    assert first["split"].value_counts().to_dict() == {**sizes, "unused": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": []}, "q.jsonl: column 'answers' of row 2 holds no answer; give at least"),
        ({"answers": None}, "'answers' of row 2 holds no answer"),
        ({"answers": [" "]}, "'answers' of row 2 holds no answer"),
        ({"question": " "}, "'question' of row 2 is empty; fill or remove it"),
        ({"question": "Capital of Peru?"}, "row 2 repeats an earlier question; remove"),
        ({"split": "dev"}, "row 2 is 'dev'; it may be train, test, few_shot, unused"),
        ({"reference": "x"}, "unknown column 'reference'; known are answers, category, gold,"),
        ({"id": "x"}, "column 'id' of row 1 is empty; fill it"),
    ],
)
def test_a_wrong_row_is_refused_with_its_number_and_a_remedy(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "q.jsonl", jsonl([ROWS[0], {**ROWS[1], **change}, ROWS[2]]))


def test_questions_keep_the_group_that_their_file_gives_to_each_of_them(tmp_path):
    facts = ["Peru", "snow", "Peru"]
    rows = [{**row, "group": fact} for row, fact in zip(ROWS, facts, strict=True)]
    assert read(tmp_path / "q.jsonl", jsonl(rows))["group"].tolist() == facts
    assert set(read(tmp_path / "q.jsonl", jsonl(ROWS))["group"]) == {""}
    with pytest.raises(ValueError, match="group is empty in 1 rows, first for question '2'"):
        read(tmp_path / "q.jsonl", jsonl([rows[0], ROWS[1], rows[2]]))


def test_impossible_splits_and_repeated_ids_are_refused(tmp_path):
    path, bare = tmp_path / "q.jsonl", [{"question": f"{n}?", "answers": "x"} for n in range(5)]
    with pytest.raises(ValueError, match="is 6, but there are only 5 questions; lower n_train"):
        read(path, jsonl(bare), n_few_shot=1, n_train=3, n_test=2)
    with pytest.raises(ValueError, match=r"no question is of the split test; .* set .* n_test"):
        read(path)
    assert len(read(path, n_few_shot=1, n_train=3, n_test=1)) == 5
    with pytest.raises(ValueError, match="row 2 repeats the id 'same'; give it another one"):
        read(path, jsonl([{**row, "id": "same"} for row in ROWS]))


@pytest.mark.parametrize(("split", "n_present"), [("few_shot", 1), ("train", 0)])
def test_fewer_questions_than_the_study_needs_are_refused(tmp_path, split, n_present):
    content = b"question,answers,split\nOne?,1,few_shot\nTwo?,2,test\n"
    message = (
        rf"quiz\.csv: {n_present} questions are of the split {split}, but the study needs at"
    )
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "quiz.csv", content, least={split: n_present + 1})
    assert len(read(tmp_path / "quiz.csv", least={split: n_present})) == 2


def test_a_line_separator_in_a_text_does_not_end_the_line(tmp_path):
    line = '{"question": "one\u2028line?", "answers": "b", "split": "test"}\n\n'
    assert read(tmp_path / "q.jsonl", line.encode())["question"].tolist() == ["one\u2028line?"]


def test_the_digest_of_the_file_is_logged_and_kept_with_the_table(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    table = read(tmp_path / "q.jsonl", jsonl(ROWS))
    [(file, digest)] = table.attrs["sources"].items()
    assert file == str(tmp_path / "q.jsonl")
    assert f"{file} has the SHA-256 {digest}" in caplog.text


CUT = gzip.compress(b"question,answers\n" * 9, mtime=0)[:-9]
CSV = {
    b"question,answers\nWhy?,caf\xe9\n": r"UTF-8 text \(byte 0xE9 in line 2\); save it as",
    b"question,answers,answers\na,b,c\n": "column 'answers' is there twice",
    b'question,answers,split\nWhy?,"[""a"", ""b""]",test\n': "'answers' of row 1 is",
    b"question,answers,split\nWhy?,\"['a', 'b']\",test\n": "is the text of a list",
    b"": "is empty; give a heading and a row",
    b'"question,answers\n': r"line 1 is not CSV \(unexpected end of data\)",
    b"question,split\nWhy?,test\n": "column 'answers' is missing",
    b"question,answers\n": "no question is of the split test",
    b'question,answers\n\n"a\nb",x\n1,2,3\n': "line 5 has 3 fields",  # the first is quoted
    b'question,answers\n"a,b\n1,2\n': r"line 2 is not CSV \(unexpected end of data\)",
    # pandas would read the question "Paris" with the reference "France".
    b"question,answers,split\nWhere is Paris, France,France,test\n": "line 2 has 4 fields, but",
}
JSONL = {  # the rest of a row after its split
    b'"question": "a", "answers": "[\'red\', \'zz\']"}': "the text of a list, ",
    b'"question": "a", "answers": "[\'a\' \'b\']"}': "answers as a list in JSONL",
    b'"question": "a", "answers": "[-2,7]"}': "brackets as a list of it alone",
    b'"question": "a", "answers": "b"}\n{"question": \n': "line 2 is not JSON",
    b'"question": "a"}\n["b"]\n': "line 2 is not a JSON object; write",
    b'"id": 1, "id": 2}\n': "line 1 is not JSON .a key is there twice",
    b'"question": "a", "answers": {"b": 1}}': "row 1 has no 'default'; give",
    b'"question": "a", "answers": [["b"]]}': "row 1 is of type list; give",
    b'"question": "\\ud800", "answers": 1}': "row 1 holds half a character",
    b'"question": "a", "answers": NaN}': "'answers' of row 1 holds no answer",
    b'"question": "a\\nAnswer: b", "answers": 1}': "'question' of row 1 has a",
    b'"question": "a", "answers": "b\\rc"}': "row 1 has a line break, which",
}
DAMAGED_FILES = [
    ("q.jsonl", "{}".encode("utf-16"), "holds zero bytes, as UTF-16 does; save"),
    ("q.jsonl", b"[" * 100_000, "is no JSON array .maximum recursion depth"),
    ("q.csv.gz", CUT, "is not a whole gzip file"),
    ("q.xz", b"x", r"files of kind '\.xz' are not read; give \.csv, \.tsv"),
    ("q.parquet", b"question,answers\n", r"is not a whole parquet file \(.*write it again"),
    ("q.parquet", b"PAR1" + bytes(99) + b"PAR1", "is not a whole parquet file"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("q.csv", *row) for row in CSV.items()]
    + [("q.jsonl", b'{"split": "test", ' + rest, message) for rest, message in JSONL.items()]
    + DAMAGED_FILES,
)
def test_an_ambiguous_file_is_refused_with_its_path(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path / name, content)
    assert str(error.value).startswith(f"{tmp_path / name}: ")


CHOICE = [
    {"question": "2+2?", "options": ["3", " 4 ", "five"], "gold": 1, "split": "few_shot"},
    {"question": "1+1?", "options": ["2", "11"], "gold": 0, "split": "test"},
]


def test_options_are_read_from_any_format_with_the_answer_that_gold_selects(tmp_path):
    table = read(tmp_path / "q.jsonl", jsonl(CHOICE))
    assert list(map(list, table["options"])) == [["3", "4", "five"], ["2", "11"]]
    assert table["gold"].tolist() == [1, 0]
    assert table["references"].tolist() == [["4"], ["2"]]
    assert not table["any_of"].any()
    pd.DataFrame(CHOICE).to_parquet(tmp_path / "q.parquet")
    lists = [{**row, "options": json.dumps(row["options"])} for row in CHOICE]
    pd.DataFrame(lists).to_csv(tmp_path / "q.csv", index=False)
    for name in ("q.parquet", "q.csv"):
        assert read(tmp_path / name).equals(table)
    assert read(tmp_path / "w.jsonl", jsonl(ROWS))[["options", "gold"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold": 2}, "'gold' of row 2 is '2'; give .* counted from 0: 0 to 1"),
        ({"gold": -1}, "'gold' of row 2 is '-1'"),
        ({"gold": None}, "'gold' of row 2 is ''"),
        ({"gold": "2.0"}, r"'gold' of row 2 is '2\.0'"),
        ({"options": ["2"]}, "'options' of row 2 is .* at least two different"),
        ({"options": ["2", " 2"]}, "'options' of row 2 is .* at least two different"),
        ({"options": ["2", ""]}, "'options' of row 2 is .* none of them empty"),
        ({"options": "2"}, "'options' of row 2 is no list but '2'"),
        ({"options": None}, "is no list but None; .* without a file of their own"),
        ({"options": ["a", "b\nc"]}, "'options' of row 2 has a line break"),
        ({"answers": "2"}, "unknown column 'answers'; questions with options have question"),
    ],
)
def test_unclear_options_are_refused_with_their_row(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "q.jsonl", jsonl([CHOICE[0], {**CHOICE[1], **change}]))


@pytest.mark.parametrize("name", ["options", "gold"])
def test_options_without_gold_and_gold_without_options_are_refused(tmp_path, name):
    rows = [{k: v for k, v in row.items() if k != name} for row in CHOICE]
    with pytest.raises(ValueError, match=f"column '{name}' is missing; options come with gold"):
        read(tmp_path / "q.jsonl", jsonl(rows))

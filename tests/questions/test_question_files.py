"""What a question file may be written in, and that no text changes or moves on the way."""

import csv
import gzip
import io
import json
import tracemalloc

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read_questions import read_questions

from persistcal.questions.own import KNOWN, tidy_questions
from persistcal.questions.question_files import read_rows
from persistcal.store import artifacts

NO_DRAW = {"n_few_shot": 0, "n_train": 0, "n_test": 0, "seed": 0}
COLUMNS = ["question", "answers", "id", "category", "split"]


def rows_of(content, kind=".csv"):
    return read_rows(content, kind, known=KNOWN).to_dict("records")


def read(path, content):
    path.write_bytes(content)
    out = path.with_name("out.parquet")
    read_questions(str(path), str(out), dataset="own", **NO_DRAW, least={})
    return artifacts.read(out, artifacts.QUESTIONS)


# What hypothesis makes of text: any character that a file can hold, but no line break
# and no space around it, both of which are not kept.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(str.strip)
ANSWERS = TEXTS.filter(bool)


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[TEXTS] * 5), min_size=1, max_size=5),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_csv_of_any_dialect_comes_back(rows, delimiter, end, encoding, quoting, zipped):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([COLUMNS, *rows])
    content = text.getvalue().encode(encoding)
    assert rows_of(gzip.compress(content, mtime=0) if zipped else content) == [
        dict(zip(COLUMNS, row, strict=True)) for row in rows
    ]


@settings(deadline=None)
@given(
    st.dictionaries(TEXTS.filter(bool), st.lists(ANSWERS, min_size=1), min_size=1, max_size=5),
    st.booleans(),
)
def test_jsonl_comes_back(accepted, ascii_only):
    lines = [
        json.dumps(
            {"question": question, "answers": answers, "split": "test"},
            ensure_ascii=ascii_only,
        )
        for question, answers in accepted.items()
    ]
    table = tidy_questions(
        read_rows("\n".join(lines).encode(), ".jsonl", known=KNOWN), **NO_DRAW
    )
    assert dict(zip(table["question"], table["references"], strict=True)) == accepted


@settings(deadline=None)
@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_what_the_json_file_says(numbers):
    lines = [f'{{"answers": {json.dumps(number)}}}' for number in numbers]
    rows = rows_of("\n".join(lines).encode(), ".jsonl")
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
        tidy_questions(read_rows(content, kind, known=KNOWN), **NO_DRAW)
    except ValueError as error:
        assert str(error)


def test_a_surplus_comma_does_not_move_the_columns(tmp_path):
    # Read by pandas, this is the question "Paris" with the reference "France".
    content = b"question,answers,split\nWhere is Paris, France,France,test\n"
    with pytest.raises(ValueError, match=r"q\.csv: line 2 has 4 fields, but the heading has 3"):
        read(tmp_path / "q.csv", content)


def test_the_line_of_a_row_counts_the_line_breaks_inside_quotes(tmp_path):
    content = b'question,answers\n\n"a\nb",x\n1,2,3\n'
    with pytest.raises(ValueError, match="line 5 has 3 fields"):
        read(tmp_path / "q.csv", content)
    with pytest.raises(ValueError, match=r"line 2 is not CSV \(unexpected end of data\)"):
        read(tmp_path / "q.csv", b'question,answers\n"a,b\n1,2\n')


def test_whole_numbers_beside_others_stay_whole(tmp_path):
    content = (
        b'{"question": 1, "answers": 5, "id": 7, "split": "test"}\n'
        b'{"question": 2, "answers": [2.50, 1e3, true, -0], "id": 8, "split": "test"}\n'
    )
    table = read(tmp_path / "q.jsonl", content)
    assert table["question_id"].tolist() == ["7", "8"]
    assert list(map(list, table["references"])) == [["5"], ["2.50", "1e3", "true", "-0"]]


def test_whole_numbers_beside_a_missing_one_stay_whole_in_parquet(tmp_path):
    frame = pd.DataFrame({"question": ["a", "b"], "answers": ["x", "y"], "split": "test"})
    frame["category"] = pd.array([7, None], dtype="Int64")
    frame.to_parquet(tmp_path / "q.parquet")
    table = read(tmp_path / "q.parquet", (tmp_path / "q.parquet").read_bytes())
    assert table["category"].tolist() == ["7", ""]
    frame.assign(answers=[5.0, 2.5]).to_parquet(tmp_path / "q.parquet")
    with pytest.raises(
        ValueError, match=r"'answers' of row 1 is the fraction 5\.0, .* as text"
    ):
        read(tmp_path / "q.parquet", (tmp_path / "q.parquet").read_bytes())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "q.csv",
            "question,answers\nWhy?,café\n".encode("latin-1"),
            r"is not utf-8 text \(byte 0xE9 in line 2\), .*; save it as UTF-8",
        ),
        ("q.jsonl", "{}".encode("utf-16-le"), "holds zero bytes, as UTF-16 without"),
        (
            "q.csv.gz",
            gzip.compress(b"question,answers\n" * 9, mtime=0)[:-9],
            "is not a whole gzip file",
        ),
        ("q.csv", b"question,answers,answers\na,b,c\n", "column 'answers' is there twice"),
        (
            "q.csv",
            b'question,answers,split\nWhy?,"[""a"", ""b""]",test\n',
            "'answers' of row 1 is",
        ),
        (
            "q.csv",
            b"question,answers,split\nWhy?,\"['a', 'b']\",test\n",
            "is the text of a list",
        ),
        (
            "q.jsonl",
            b'{"question": "a", "answers": "[\'red\', \'zz\']"}',
            "the text of a list, ",
        ),
        (
            "q.jsonl",
            b'{"question": "a", "answers": "[\'a\' \'b\']"}',
            "answers as a list in JSONL",
        ),
        (
            "q.jsonl",
            b'{"question": "a", "answers": "[-2,7]"}',
            "brackets as a list of it alone",
        ),
        ("q.csv", b"", "column 'question' is missing"),
        ("q.csv", b"question,answers\n", "no question is of the split test"),
        ("q.jsonl", b'{"question": "a"}\n["b"]\n', "line 2 is not a JSON object; write"),
        ("q.jsonl", b'{"id": 1, "id": 2}\n', "line 1 is not JSON .a key is there twice"),
        ("q.jsonl", b"[" * 100_000, "line 1 is not JSON .maximum recursion depth"),
        ("q.jsonl", b'{"question": "a", "answers": {"b": 1}}', "row 1 is of type dict; give"),
        ("q.jsonl", b'{"question": "a", "answers": [["b"]]}', "row 1 is of type list; give"),
        ("q.jsonl", b'{"question": "\\ud800", "answers": 1}', "row 1 holds half a character"),
        ("q.jsonl", b'{"question": "a", "answers": NaN}', "'answers' of row 1 holds no answer"),
        (
            "q.jsonl",
            b'{"question": "a\\nAnswer: b", "answers": 1}',
            "'question' of row 1 has a",
        ),
        ("q.jsonl", b'{"question": "a", "answers": "b\\rc"}', "row 1 has a line break, which"),
        ("q.xz", b"", r"files of kind '\.xz' are not read; give \.jsonl, \.csv or"),
        ("q.parquet", b"question,answers\n", r"is not a whole parquet file \(.*write it again"),
        ("q.parquet", b"PAR1" + bytes(99) + b"PAR1", "is not a whole parquet file"),
    ],
)
def test_what_is_not_certain_is_one_sentence(tmp_path, name, content, message):
    if name == "q.jsonl":  # so that the split is no matter
        content = content.replace(b'"question"', b'"split": "test", "question"')
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path / name, content)
    assert str(caught.value).startswith(f"{tmp_path / name}: ")


def test_what_unpacks_to_more_than_is_read_takes_no_memory(monkeypatch):
    """A megabyte of zeros is a kilobyte of gzip."""
    monkeypatch.setattr("persistcal.questions.question_files.MOST_UNZIPPED", 2**22)
    content = gzip.compress(bytes(2**26), mtime=0)
    assert len(content) < 2**17
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="unpacks to more than 4,194,304 bytes; split it"):
            rows_of(content)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()

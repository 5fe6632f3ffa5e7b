"""Files of a judge that were cut, edited or damaged: no job stops, no complete row is lost."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_server import candidates, completion

from persistcal.judge.human_labels import Unresolved, append_unresolved, read_human_labels
from persistcal.judge.messages import Replies, Reply, candidate_id, candidate_of
from persistcal.store.replies import SPENDING, Ledger, append_rows, parse_rows, read_lines
from persistcal.store.sheets import SheetError, write_sheet

# The queue


def test_a_queue_that_a_spreadsheet_saved_is_read_and_extended(fake, tmp_path):
    """Semicolons, a byte order mark, other columns, no last line break, formulas."""
    queue = tmp_path / "queue.csv"
    odd = candidate_of("Sum; of 1, 1?", ["two", 'the "2"'], "=1+1")
    append_unresolved(queue, [Unresolved(odd, "refusal", "-no")])
    (row,) = fake.waiting
    assert row["answer"] == "'=1+1"
    assert row["references"] == 'two | the "2"'

    row["label"] = "incorrect"
    text = 'id;note;label;question\r\n{id};mine;{label};"Sum; of 1, 1?"'.format(**row)
    queue.write_text(text, encoding="utf-8-sig")
    assert read_human_labels(queue) == {candidate_id(odd): "incorrect"}

    second = candidates(1)[0]
    waiting = [Unresolved(odd, "", ""), Unresolved(second, "malformed", "x")]
    assert append_unresolved(queue, waiting) == 1
    assert queue.read_bytes().startswith(text.encode("utf-8-sig"))

    number = candidate_id(second)
    text = queue.read_text(encoding="utf-8-sig")
    queue.write_text(text.replace(f"{number};;;", f"{number};;correct;"), encoding="utf-8")
    assert read_human_labels(queue) == {candidate_id(odd): "incorrect", number: "correct"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,label\na,yes\n", "row 2 has the label 'yes'"),
        (b"id,label\na,correct\na,incorrect\n", "row 3 gives a a second label"),
        (b"a,correct\n", "first line must name the columns"),
        (b"id,label\n\xe9,correct\n", "not UTF-8 text"),
    ],
)
def test_wrong_labels_in_a_queue_are_refused_with_their_row(tmp_path, content, message):
    (tmp_path / "queue.csv").write_bytes(content)
    with pytest.raises(SheetError, match=message):
        read_human_labels(tmp_path / "queue.csv")


def test_a_label_in_a_queue_of_which_a_column_was_sorted_is_refused(fake, tmp_path):
    queue = tmp_path / "queue.csv"
    pair = [candidate_of(f"Year {i}?", [f"1.{i}0", "x"], f"a{i}") for i in (1, 2)]
    known = {candidate_id(candidate): candidate for candidate in pair}
    append_unresolved(queue, [Unresolved(candidate, "", "") for candidate in pair])
    rows = [{**row, "label": "correct"} for row in fake.waiting]
    ids_alone = [{name: row[name] for name in ("id", "label")} for row in rows]

    def read(rows):
        queue.write_bytes(write_sheet(list(rows[0]), rows))
        return read_human_labels(queue, known)

    assert len(read(rows[::-1])) == len(read(ids_alone)) == 2
    for column in ("question", "references", "answer"):
        moved = [{**rows[i], column: rows[1 - i][column]} for i in (0, 1)]
        with pytest.raises(SheetError, match=f"row 2 has the {column} .*; delete the row"):
            read(moved)


def test_a_queue_cut_at_any_byte_stops_no_job_and_keeps_all_complete_rows(tmp_path):
    queue = tmp_path / "queue.csv"
    pair = [candidate_of(f"Qü, {i}?", ['a "b"', "c"], f"d{i}") for i in range(2)]
    rows = [Unresolved(candidate, "refusal", "no\r\nway") for candidate in pair]
    ids = [candidate_id(candidate) for candidate in pair]
    append_unresolved(queue, rows)
    whole = queue.read_bytes().replace(b'\r\n,"Q', b'\r\ncorrect,"Q')

    assert read_human_labels(queue) == {}
    ends = [whole.index(number.encode()) + 32 for number in ids]
    for size in range(len(whole) + 1):
        queue.write_bytes(whole[:size])
        kept = [number for number, end in zip(ids, ends, strict=True) if end <= size]
        labels = read_human_labels(queue)
        assert {number for number in ids if number in labels} == {*kept}
        assert append_unresolved(queue, rows) == 2 - len(kept)
        assert append_unresolved(queue, rows) == 0
        queue.write_bytes(queue.read_bytes().replace(b'\r\n,"Q', b'\r\nincorrect,"Q'))
        labels = read_human_labels(queue)
        assert [labels[number] for number in ids] == [
            "correct" if number in kept else "incorrect" for number in ids
        ]


def test_very_long_texts_in_a_queue_stop_no_job(fake, tmp_path):
    long = candidate_of("Q" * 200_000, ["r" * 200_000], "a" * 200_000)
    fake.replies["a" * 200_000] = completion("?" * 200_000)
    assert fake.ask([long], max_cost=99) == "?"
    assert fake.ask([long], max_cost=99) == "?"
    assert max(map(len, (tmp_path / "queue.csv").read_text().split(","))) < 32_767
    with (tmp_path / "queue.csv").open("a") as file:  # longer than a person would write
        file.write(f"correct,{'Q' * 200_000},,,,,{candidate_id(long)}\r\n")
    assert fake.ask([long]) == "r"


# The ledger


def test_a_ledger_cut_at_any_byte_stops_no_job_and_counts_complete_lines(tmp_path):
    ledger = Ledger(tmp_path / "spending.csv")
    ledger.add("m", 10, 1.5, "asked")
    ledger.add("m", -4, -0.5, "not answered")
    ledger.add("m", 0, 0, "not answered")
    with ledger.path.open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["asked", "not answered"]
    whole = ledger.path.read_bytes()
    assert ledger.total() == (6, 1.0)
    first, second = (whole.index(text) + len(text) for text in (b"1.500000,", b"-0.500000,"))
    for size in range(len(whole) + 1):
        ledger.path.write_bytes(whole[:size])
        counted = (6, 1.0) if size >= second else (10, 1.5) if size >= first else (0, 0.0)
        assert ledger.total() == counted
        ledger.add("m", 7, 0.25, "asked")
        assert ledger.total() == (counted[0] + 7, counted[1] + 0.25)


def test_costs_that_are_not_numbers_do_not_lower_the_total(tmp_path):
    costs = ["nan", "inf", "1e400", "", "x", 3.0]
    rows = [["now", "m", number, cost, "asked"] for number, cost in enumerate(costs)]
    append_rows(tmp_path / "spending.csv", [SPENDING, *rows])
    assert Ledger(tmp_path / "spending.csv").total() == (5, 3.0)


# Rows


def test_a_failed_append_does_not_change_the_file(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    append_rows(path, [["a", "b"]])
    monkeypatch.setattr("persistcal.store.files.os.fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        append_rows(path, [["c", "d"]])
    assert path.read_bytes() == b"a,b\r\n"


FIELD = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from('",\n\r')
TABLE = st.lists(st.lists(FIELD, min_size=3, max_size=3).filter(any), max_size=5)


@given(TABLE, st.sampled_from(",;\t"))
def test_rows_are_read_as_they_were_appended(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("rows") / "r.csv"
    for row in rows:
        append_rows(path, [row], delimiter=delimiter)
    read = parse_rows(read_lines(path), delimiter=delimiter, columns=3)
    assert [fields for _, fields in read] == [
        [" ".join(field.splitlines()) for field in row] for row in rows
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,"b\nc"\nd,e\n', [(1, ["a", "b\nc"]), (3, ["d", "e"])]),  # a field of two lines
        ('a,"b\n1,2\nc"\n', [(1, None), (2, ["1", "2"]), (3, ['c"'])]),  # cut before a row
        ("a,b,c\n\nd\n", [(1, None), (3, ["d"])]),
        ('a,"b\n', [(1, None)]),
    ],
)
def test_an_open_quote_in_a_cut_line_hides_no_later_row(text, rows):
    assert list(parse_rows(text.splitlines(keepends=True), columns=2)) == rows


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 4))
def test_any_text_is_read_as_rows(text, columns):
    lines = text.splitlines(keepends=True)
    for number, fields in parse_rows(lines, columns=columns):
        assert 1 <= number <= len(lines)
        assert fields is None or 0 < len(fields) <= columns


# Replies


@pytest.mark.parametrize(
    "entry",
    [
        *("[]", '"x"', "{", "\ufeff"),
        '{"label": ["correct"], "reason": "", "reply": ""}',
        '{"label": "right", "reason": "", "reply": ""}',
        '{"labels": "correct", "reason": "", "reply": ""}',
        '{"labels": 3, "reason": "", "reply": ""}',
        '{"labels": ["correct", "correct"], "reason": "", "reply": ""}',
    ],
)
def test_a_damaged_reply_is_ignored(tmp_path, entry):
    replies, key = Replies(str(tmp_path)), "ab" * 16
    replies.put({key: Reply(("correct",), "", "x")}, {key: {"messages": [{"content": ""}]}})
    assert replies.get(key) == (("correct",), "", "x")
    (path,) = tmp_path.rglob("*.json")
    path.write_text(entry, encoding="utf-8")
    assert replies.get(key) is None


def test_replies_of_earlier_versions_are_found(tmp_path):
    folder = tmp_path / "cache" / "ab"
    folder.mkdir(parents=True)
    single_key, joint_key = "ab" * 16, "ab" + "0" * 30 + "-2"
    kept = '{\n "label": "correct",\n "reason": "",\n "reply": "CORRECT",\n "asked": "Q?"\n}'
    (folder / f"{single_key[2:]}.json").write_text(kept)
    entry = '{"labels": ["correct", null], "reason": "malformed", "reply": "1. CORRECT"}'
    (folder / f"{joint_key[2:]}.json").write_text(entry)
    replies = Replies(str(tmp_path))
    assert replies.get(single_key) == (("correct",), "", "CORRECT")
    assert replies.get(joint_key) == (("correct", None), "malformed", "1. CORRECT")
    replies.put(
        {single_key: replies.get(single_key)}, {single_key: {"messages": [{"content": "Q?"}]}}
    )
    assert (folder / f"{single_key[2:]}.json").read_text() == kept

"""Sheets that a person fills in: kept, escaped, and read as spreadsheets save them."""

import csv

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistcal.store import artifacts
from persistcal.store.sheets import (
    DRAWN_FROM,
    FORMULA,
    SheetError,
    append_to_sheet,
    as_cell,
    check_shown,
    check_source,
    check_unfilled,
    digest_of,
    escape_formula,
    filled_prefix,
    find_rows,
    read_drawn,
    read_mark,
    read_sheet,
    unescape_formula,
    write_sheet,
)

DRAWN = ["id", "answer", DRAWN_FROM, "correct"]
ROWS = [{"id": name, "answer": f"={name}", DRAWN_FROM: "sheet-1"} for name in ("007", "1E5")]


@pytest.fixture
def sheet_path(tmp_path):
    """A sheet of two answers that begin like formulas."""
    file = tmp_path / "sheet.csv"
    file.write_bytes(write_sheet(DRAWN, ROWS))
    return file


def replace_text(sheet_path, *, old="", new="", encoding="utf-8-sig"):
    """Replace text of a sheet and save it in an encoding."""
    text = sheet_path.read_bytes().decode("utf-8-sig")
    sheet_path.write_bytes(text.replace(old, new).encode(encoding))


def test_cells_that_begin_like_formulas_are_escaped(sheet_path):
    assert b",'=007," in sheet_path.read_bytes()
    for text in ("=1", "+1", "-1", "@a", "\t=1", "\r=1"):
        assert as_cell(text) == f"'{text}"
    for text in ("", "1+1", "a=1", "'a"):
        assert as_cell(text) == text


@pytest.mark.parametrize("text", ["=1", "'=1", "''-1", "'a", "a=", "", "@", "+49", "\r="])
def test_an_escaped_text_is_read_back(text):
    assert unescape_formula(escape_formula(text)) == text
    assert not escape_formula(text).startswith(FORMULA)


def test_a_csv_of_results_has_no_formulas_and_keeps_all_texts(tmp_path):
    table = artifacts.CONFIDENT_REGRESSIONS
    key = dict.fromkeys(("model", "dataset", "earlier", "later", "train_dataset"), "-x")
    row = key | {"estimator": "=e", "seed": 0, "target": 0.9, "question_id": "+1"}
    row |= {"earlier_confidence": 0.5, "later_confidence": 0.5}
    frame = pd.DataFrame([row | {"earlier_answer": "=HYPERLINK(1)", "later_answer": None}])
    sheet_path = str(tmp_path / "regressions.csv")
    artifacts.write_csv(frame, sheet_path, table)
    cells = next(csv.DictReader((tmp_path / "regressions.csv").read_text().splitlines()))
    assert [name for name, cell in cells.items() if cell.startswith(FORMULA)] == []
    assert cells["earlier_answer"] == "'=HYPERLINK(1)"
    read = artifacts.read_csv(sheet_path, table)
    assert read["earlier_answer"].item() == "=HYPERLINK(1)"
    assert read["question_id"].item() == "+1"


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16")]
)
def test_a_sheet_saved_by_a_spreadsheet_is_read_and_extended(sheet_path, delimiter, encoding):
    replace_text(sheet_path, old=",", new=delimiter, encoding=encoding)
    blank_rows = f"{delimiter * 3}\r\n\r\n"
    end = blank_rows.encode("utf-16-le" if encoding == "utf-16" else "utf-8")
    rewritten = sheet_path.read_bytes() + end
    sheet_path.write_bytes(rewritten)
    append_to_sheet(read_drawn(str(sheet_path), DRAWN), [{"id": "é", "answer": "-1"}])
    sheet = read_drawn(str(sheet_path), DRAWN)
    assert sheet_path.read_bytes().startswith(rewritten)
    assert [row.cells["id"] for row in sheet.rows] == ["007", "1E5", "é"]
    assert [row.number for row in sheet.rows] == [2, 3, 6]
    assert sheet.rows[2].cells["answer"] == "'-1"


@pytest.mark.parametrize(
    ("entry", "mark"),
    [("1.0", 1), ("0,00", 0), ("Y", 1), (" no ", 0), ("WAHR", 1), ("nein", 0), ("", None)],
)
def test_marks_are_read_as_people_and_spreadsheets_spell_them(sheet_path, entry, mark):
    replace_text(sheet_path, old="sheet-1,\r\n", new=f'sheet-1,"{entry}"\r\n')
    sheet = read_drawn(str(sheet_path), DRAWN)
    assert [read_mark(sheet, row, "correct") for row in sheet.rows] == [mark, mark]


@pytest.mark.parametrize("entry", ["2", "0.5", "1.05", "maybe", "-1"])
def test_an_unclear_mark_is_refused_with_its_row(sheet_path, entry):
    replace_text(sheet_path, old="sheet-1,\r\n", new=f"sheet-1,{entry}\r\n")
    sheet = read_drawn(str(sheet_path), DRAWN)
    with pytest.raises(SheetError, match=rf"sheet\.csv: row 3 has '{entry}' in the column"):
        read_mark(sheet, sheet.rows[1], "correct")


@pytest.mark.parametrize(
    "changes",
    [
        {"sheet-1,\r\n": "sheet-1,1\r\n"},
        {"sheet-1,\r\n": "sheet-1,1\r\n", "correct": "remark"},
        {"id,": "name,"},
        {"sheet-1,\r\n": "sheet-1,,more\r\n"},
    ],
    ids=["entry", "another heading", "another column", "cell outside the table"],
)
def test_a_sheet_with_any_entry_is_never_replaced(sheet_path, changes):
    columns = DRAWN[:3]
    check_unfilled(str(sheet_path), columns, "move it away")
    for old, new in changes.items():
        replace_text(sheet_path, old=old, new=new)
    with pytest.raises(SheetError, match=r"sheet\.csv: someone has written .*; move it away"):
        check_unfilled(sheet_path, columns, "move it away")


def test_rows_drawn_from_other_data_are_refused(sheet_path):
    sheet = read_drawn(str(sheet_path), DRAWN)
    check_source(sheet, "sheet-1", "draw again")
    with pytest.raises(SheetError, match="row 2 was drawn from other data; draw again"):
        check_source(sheet, digest_of(["a"], 0.5), "draw again")
    assert digest_of(["a"], 0.5) not in (digest_of(["a"], 0.4), digest_of(["b"], 0.5))
    check_shown(sheet, sheet.rows[0], "answer", "=007")
    with pytest.raises(SheetError, match=r"row 2 has the answer \"'=007\", and now it is '8'"):
        check_shown(sheet, sheet.rows[0], "answer", "8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("007,", "7,", "row 2 has the id '7', which a spreadsheet has made of '007'"),
        ("1E5,", "100000,", "row 3 has the id '100000', which a spreadsheet has made of '1E5'"),
        ("1E5,", "1. Jan,", "'1. Jan'.* if a spreadsheet has changed it, draw the sheet"),
        ("1E5,", "007,", "row 3 repeats the id '007' of row 2"),
    ],
)
def test_ids_changed_by_a_spreadsheet_are_refused_with_a_reason(sheet_path, old, new, message):
    ids = ["007", "1E5"]
    assert list(find_rows(read_drawn(str(sheet_path), DRAWN), "id", ids)) == ids
    replace_text(sheet_path, old=f"\r\n{old}", new=f"\r\n{new}")
    with pytest.raises(SheetError, match=message):
        find_rows(read_drawn(str(sheet_path), DRAWN), "id", ids)


def test_an_id_is_found_by_its_cell(tmp_path):
    """A line break becomes a space, and a formula begins with an apostrophe."""
    ids = ["a\nb", "=1", "'=1", "x" * 6000, " q "]
    path = tmp_path / "s.csv"
    path.write_bytes(write_sheet(["id", "correct"], [{"id": name} for name in ids]))
    assert list(find_rows(read_sheet(str(path), ["id"]), "id", ids)) == ids


def test_labels_must_fill_the_first_rows_of_the_sheet(sheet_path):
    sheet = read_drawn(str(sheet_path), DRAWN)
    first, second = sheet.rows
    assert filled_prefix(sheet, [(first, 1), (second, 0)]) == 2
    assert filled_prefix(sheet, [(first, 1), (second, None)]) == 1
    with pytest.raises(SheetError, match=r"row 2 has no entry and row 3 has one.*no random"):
        filled_prefix(sheet, [(first, None), (second, 1)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id;note\r\n", "the first line must name the columns id, answer"),
        (b"id,answer,drawn_from,correct,correct\r\n", "the column 'correct' is there twice"),
        (b"id,answer,drawn_from,correct\r\na,b\r\na,b,c,1,1\r\n", "row 3 is no row"),
        (b"id,answer,drawn_from,correct\r\n\xe9,b,c,1\r\n", "is not UTF-8 text"),
        (
            "id,answer,drawn_from,correct".encode("utf-16-le"),
            "is not UTF-8 text; save it as CSV",
        ),
        (b"PK\x03\x04\x00", "is not UTF-8 text; save it as CSV"),  # .xlsx
    ],
)
def test_a_damaged_sheet_is_refused(tmp_path, content, message):
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(SheetError, match=rf"s\.csv:? {message}"):
        read_drawn(str(tmp_path / "s.csv"), DRAWN)
    (tmp_path / "s.csv").write_bytes(b"")
    with pytest.raises(SheetError, match=r"s\.csv: is empty; move it away"):
        find_rows(read_drawn(str(tmp_path / "s.csv"), DRAWN), "id", ["a"])


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_a_sheet_keeps_texts_except_line_breaks_and_formulas(tmp_path_factory, texts):
    sheet_path = tmp_path_factory.getbasetemp() / "s.csv"  # one file for all examples
    sheet_path.write_bytes(
        write_sheet(["n", "text"], [{"n": "x", "text": text} for text in texts])
    )
    cells = [row.cells["text"] for row in read_sheet(str(sheet_path), ["n", "text"]).rows]
    assert cells == [as_cell(" ".join(text.splitlines())) for text in texts]

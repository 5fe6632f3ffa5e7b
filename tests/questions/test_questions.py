"""Questions of one's own, from files as users keep them."""

import json

import pandas as pd
import pytest
from read_questions import read_questions

from persistcal.questions.own import draw_splits, tidy_questions
from persistcal.store import artifacts

ROWS = [
    {"question": " Capital of Peru? ", "answers": "Lima", "split": "few_shot"},
    {"question": "Colour of snow?", "answers": ["white", " White "], "split": "train"},
    {"question": "007?", "answers": "1.0", "split": "test"},
]
NO_DRAW = {"n_few_shot": 0, "n_train": 0, "n_test": 0, "seed": 0}


def read(path, **draw):
    out = path.with_suffix(".out.parquet")
    read_questions(str(path), str(out), **{**NO_DRAW, "dataset": "own", "least": {}, **draw})
    return artifacts.read(out, artifacts.QUESTIONS)


def as_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_jsonl_with_texts_and_lists(tmp_path):
    as_jsonl(tmp_path / "q.jsonl", ROWS)
    table = read(tmp_path / "q.jsonl")
    assert table["question"].tolist() == ["Capital of Peru?", "Colour of snow?", "007?"]
    assert [list(r) for r in table["references"]] == [["Lima"], ["white", "White"], ["1.0"]]
    assert table["any_of"].tolist() == [False, True, False]
    assert table["split"].tolist() == ["few_shot", "train", "test"]
    assert table["index"].tolist() == [0, 1, 2]
    assert table["question_id"].tolist() == ["1", "2", "3"]


def test_csv_keeps_text_as_it_is(tmp_path):
    (tmp_path / "q.csv").write_text(
        "question,answers,id,category,split\n"
        '"Agent, number?",007,x1,spies,test\nNA?,NA,x2,,train\n'
    )
    table = read(tmp_path / "q.csv")
    assert table["question"].tolist() == ["Agent, number?", "NA?"]
    assert [list(r) for r in table["references"]] == [["007"], ["NA"]]
    assert table["question_id"].tolist() == ["x1", "x2"]
    assert table["category"].tolist() == ["spies", ""]


def test_parquet_with_lists(tmp_path):
    frame = pd.DataFrame(ROWS).assign(answers=[["Lima"], ["white", "snow-white"], ["1"]])
    frame.to_parquet(tmp_path / "q.parquet")
    assert [list(r) for r in read(tmp_path / "q.parquet")["references"]] == [
        ["Lima"],
        ["white", "snow-white"],
        ["1"],
    ]


def test_all_three_formats_give_the_same_table(tmp_path):
    rows = [{"question": f"Q{n}?", "answers": f"a{n}"} for n in range(8)]
    as_jsonl(tmp_path / "a.jsonl", rows)
    pd.DataFrame(rows).to_csv(tmp_path / "b.csv", index=False)
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    draw = {"n_few_shot": 1, "n_train": 3, "n_test": 2, "seed": 5}
    read_all = [
        read(tmp_path / name, **draw).map(lambda v: list(v) if hasattr(v, "tolist") else v)
        for name in ("a.jsonl", "b.csv", "c.parquet")
    ]
    assert read_all[0].to_dict("list") == read_all[1].to_dict("list")
    assert read_all[0].to_dict("list") == read_all[2].to_dict("list")
    assert read_all[0]["split"].value_counts().to_dict() == {
        "few_shot": 1,
        "train": 3,
        "test": 2,
        "unused": 2,
    }


def test_the_draw_depends_on_its_seed_alone():
    sizes = {"n_few_shot": 2, "n_train": 10, "n_test": 10}
    once, again = (draw_splits(30, **sizes, seed=1).tolist() for _ in range(2))
    assert once == again
    assert once != draw_splits(30, **sizes, seed=2).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"answers": []},
            "q.jsonl: column 'answers' of row 2 holds no answer; give at least one",
        ),
        ({"answers": ""}, "'answers' of row 2 holds no answer"),
        ({"answers": None}, "'answers' of row 2 holds no answer"),
        ({"answers": [" "]}, "'answers' of row 2 holds no answer"),
        ({"question": " "}, "'question' of row 2 is empty; fill"),
        ({"question": "Capital of Peru?"}, "row 2 repeats an earlier question; remove"),
        (
            {"split": "dev"},
            "'split' of row 2 is 'dev'; it may be train, test, few_shot, unused",
        ),
        ({"reference": "x"}, "unknown column 'reference'; known are answers, category, id"),
    ],
)
def test_a_bad_row_is_named_with_its_remedy(tmp_path, change, message):
    as_jsonl(tmp_path / "q.jsonl", [ROWS[0], {**ROWS[1], **change}, ROWS[2]])
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "q.jsonl")


def test_a_missing_column(tmp_path):
    as_jsonl(tmp_path / "q.jsonl", [{"question": "Why?", "split": "test"}])
    with pytest.raises(ValueError, match="column 'answers' is missing"):
        read(tmp_path / "q.jsonl")


def test_a_split_larger_than_the_data(tmp_path):
    as_jsonl(tmp_path / "q.jsonl", [{"question": f"{n}?", "answers": "x"} for n in range(5)])
    with pytest.raises(
        ValueError, match=r"is 6, but there are only 5 questions; lower n_train"
    ):
        read(tmp_path / "q.jsonl", n_few_shot=1, n_train=3, n_test=2)


def test_a_repeated_id(tmp_path):
    as_jsonl(tmp_path / "q.jsonl", [{**row, "id": "same"} for row in ROWS])
    with pytest.raises(ValueError, match="row 2 repeats the id 'same'"):
        read(tmp_path / "q.jsonl")
    as_jsonl(tmp_path / "q.jsonl", [{**ROWS[0], "id": 1}, ROWS[1], ROWS[2]])
    with pytest.raises(ValueError, match="column 'id' of row 2 is empty"):
        read(tmp_path / "q.jsonl")


def test_another_kind_of_file(tmp_path):
    (tmp_path / "q.xlsx").write_text("")
    with pytest.raises(
        ValueError, match=r"q\.xlsx: .*'\.xlsx' are not read; give \.jsonl, \.csv"
    ):
        read(tmp_path / "q.xlsx")


def test_a_line_that_is_not_json_is_named(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "a", "answers": "b"}\n{"question": \n')
    with pytest.raises(ValueError, match=r"q\.jsonl: .*line 2"):
        read(tmp_path / "q.jsonl")


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    (tmp_path / "q.jsonl").write_text(
        '{"question": "one\u2028line?", "answers": "b", "split": "test"}\n\n', encoding="utf-8"
    )
    assert read(tmp_path / "q.jsonl")["question"].tolist() == ["one\u2028line?"]


def test_numbers_and_missing_values(tmp_path):
    """A number is an answer like any other; a missing id or category is not the text 'nan'."""
    rows = pd.DataFrame(
        {
            "question": ["1+1?", "2+2?"],
            "answers": [2, 4],
            "category": ["sum", None],
            "split": ["train", "test"],
        }
    )
    table = tidy_questions(rows, **NO_DRAW)
    assert table["references"].tolist() == [["2"], ["4"]]
    assert table["category"].tolist() == ["sum", ""]


def test_nothing_to_test_on(tmp_path):
    as_jsonl(tmp_path / "q.jsonl", [{"question": "Why?", "answers": "x"}])
    with pytest.raises(ValueError, match=r"no question is of the split test; .* set .* n_test"):
        read(tmp_path / "q.jsonl")


@pytest.mark.parametrize(("split", "there"), [("few_shot", 1), ("train", 0)])
def test_fewer_questions_than_the_study_needs_are_refused(tmp_path, split, there):
    path = tmp_path / "quiz.csv"
    path.write_text("question,answers,split\nOne?,1,few_shot\nTwo?,2,test\n", encoding="utf-8")
    message = rf"quiz\.csv: {there} questions are of the split {split}, but the study needs at"
    with pytest.raises(ValueError, match=message):
        read(path, least={split: there + 1})
    assert len(read(path, least={split: there})) == 2

"""Sample logs of lm-evaluation-harness: what arrives of them, what is refused."""

import re
from pathlib import Path

import pytest
from import_answers import import_answers
from own_rows import ONE as NAMED
from own_rows import wanted, write_rows

from persistcal.imports.answer_files import read_answers
from persistcal.store.user_files import UserTableError

# Both written by version 0.4.13: a task with `repeats: 3` and its model `dummy`; and one with
# the filters and the score of gsm8k, whose four answers are chains of thought.
REPEATED, FILTERED = (
    Path(__file__).with_name(f"lm_eval_{name}.jsonl") for name in ("samples", "filtered")
)


def line(doc_id, filter_name="none", **changes):
    return {
        "doc_id": doc_id,
        "doc": {"question": f"Where is {doc_id}?"},
        "target": "['Oslo', 'Oslo city']",
        "arguments": {"gen_args_0": {"arg_0": "prompt", "arg_1": {"until": ["\n"]}}},
        "resps": [[" Oslo", " Lima"]],
        "filtered_resps": ["Oslo"],
        "filter": filter_name,
        "metrics": ["exact_match"],
        "exact_match": 1.0,
        **changes,
    }


def read(folder, lines, **entry):
    file = write_rows(folder / "samples_quiz.jsonl", lines)
    return read_answers({"file": file, **NAMED, **entry})


def test_every_response_arrives_once_whatever_the_filters(tmp_path):
    rows = read(tmp_path, [line(i, name) for name in ("strict", "loose") for i in range(2)])
    assert rows["references"].tolist() == [("Oslo", "Oslo city")] * 4
    assert rows["answer"].tolist() == ["Oslo", "Lima"] * 2
    assert rows["sample"].tolist() == [0, 1] * 2


def test_a_log_as_the_harness_wrote_it_becomes_tables():
    questions, beams, _ = import_answers(
        entries=[{"file": str(REPEATED), **NAMED, "checkpoint": name} for name in "ab"],
        strategy="sample",
        known={"m1": {"a": False, "b": True}},
        wanted=wanted(),
    )
    asked = [f"Which country is {city} in?" for city in ("Oslo", "Lima")]
    assert questions["question"].tolist() == asked
    references = [list(accepted) for accepted in questions["references"]]
    assert references == [["Norway", "Kingdom of Norway"], ["Peru"]]
    of_a = beams[beams["checkpoint"] == "a"]
    assert of_a[["question_id", "beam", "text"]].values.tolist() == [
        [name, sample, "lol"] for name in "01" for sample in range(3)
    ]


@pytest.mark.parametrize(
    ("entry", "answers", "labels"),
    [
        # What the model said of 0 + 1 is "It is 7.", in which strict-match finds nothing.
        ({"filter": "strict-match", "labels": "log"}, ["[invalid]", "3", "5", "7"],
         ["incorrect", "correct", "correct", "correct"]),
        ({"filter": "flexible-extract"}, ["7.", "3", "5", "7"], [""] * 4),
        ({}, ["It is 7.", *(f"We add {i}.\n#### {2 * i + 1}" for i in (1, 2, 3))], [""] * 4),
    ],
)  # fmt: skip
def test_a_filter_says_what_the_answer_is_and_the_log_whether_it_is_right(
    entry, answers, labels
):
    rows = read_answers({"file": str(FILTERED), **NAMED, **entry})
    assert rows["question_id"].tolist() == ["0", "1", "2", "3"]
    assert [re.sub(" and .", "", answer) for answer in rows["answer"]] == answers
    assert rows["label"].tolist() == labels


@pytest.mark.parametrize(
    "target",
    ["[1, 2]", "[-2,7]", "['a' 'b']", "[Verse 1]", "['\\x']", "[" + "-" * 100_000 + "1]"],
)
def test_a_target_in_brackets_is_one_text(tmp_path, target):
    assert read(tmp_path, [line(0, target=target)])["references"][0] == (target,)


def test_a_target_that_the_document_has_as_a_text_is_one(tmp_path):
    doc = {"question": "Which list?", "solution": "['a', 'b']"}
    rows = read(tmp_path, [line(0, doc=doc, target=doc["solution"])])
    assert rows["references"][0] == ("['a', 'b']",)


def test_arguments_go_by_their_names(tmp_path):
    request = {"arg_1": {"until": ["\n"]}, "arg_0": "prompt"}
    rows = read(tmp_path, [line(0, arguments={"gen_args_0": request})])
    assert rows["answer"].tolist() == ["Oslo", "Lima"]


def test_arguments_as_older_versions_wrote_them(tmp_path):
    old = line(0, arguments=[["prompt", {"until": ["\n"]}]], exact_match="1.0")
    old = {key: old[key] for key in old if key not in ("filter", "metrics")}
    assert read(tmp_path, [old])["answer"].tolist() == ["Oslo", "Lima"]
    old["resps"] = [[" Oslo"]]
    assert read(tmp_path, [old], labels="log")["label"].tolist() == ["correct"]


LOGGED, STRICT = {"labels": "log"}, {"filter": "strict"}
ONE = {"resps": [[" Oslo"]]}
SCORED, TWICE = (
    {f"gen_args_{i}": {"arg_0": "prompt", "arg_1": said} for i in range(2)}
    for said in ("a", {})
)


@pytest.mark.parametrize(
    ("lines", "entry", "message"),
    [
        ([line(0, resps=[[" a"], [" b"]])], {}, r"resps of row 1 is \[\[' a'\], "),
        ([line(0, resps=[" Oslo"])], {}, "resps of row 1 is .* a list of one"),
        ([line(0, resps=[])], {}, "resps of row 1 is"),
        ([line(0, resps=[[]])], {}, "resps of row 1 is"),
        ([line(0, resps={"a": "b"})], {}, "resps of row 1 is {'a': 'b'}"),
        ([line(0, resps=[[None]])], {}, r"resps of row 1 is \[\[None\]\]"),
        ([line(0, doc={"text": "?"})], {}, "document of row 1 has no 'question'"),
        ([line(0, arguments=SCORED)], {}, "row 1 is of a task without free text"),
        ([line(0, arguments=[["prompt", " a"]])], {}, "row 1 is of a task without free text"),
        ([line(0, arguments=TWICE)], {}, "row 1 is of a task without free text"),
        ([line(0, arguments="x")], {}, "row 1 is of a task without free text"),
        ([line(0, "a"), line(0, "b", resps=[[" c"]])], {}, "two runs or tasks; keep"),
        ([line(0), line(1, "strict")], STRICT, "has 1 documents without a line of the"),
        ([line(0)], STRICT, "has no filter 'strict'; it has none"),
        ([line(0, "strict", filtered_resps=[])], STRICT, "filtered_resps of row 1 is"),
        ([line(0)], LOGGED, "row 1 has one score for 2 answers"),
        ([line(0, "a", **ONE), line(0, "b", **ONE)], LOGGED, "has scores of several"),
        ([line(0, **ONE, exact_match=0.5)], LOGGED, "has the scores 'exact_match: 0.5', but"),
        ([line(0, **ONE, metrics=["f1", "em"])], LOGGED, "`labels: log` needs exact_match"),
        ([line(0, **ONE, metrics=[])], LOGGED, "`labels: log` needs exact_match"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, lines, entry, message):
    with pytest.raises(UserTableError, match=rf"samples_quiz\.jsonl: .*{message}"):
        read(tmp_path, lines, **entry)


def test_a_filter_for_few_documents_does_not_drop_the_others(tmp_path):
    """Its lines come first in the log."""
    rows = read(tmp_path, [line(7, "rare"), *(line(i) for i in range(40))])
    assert rows["question_id"].nunique() == 40


@pytest.mark.parametrize("key", [{"filter": "strict"}, {"labels": "log"}])
def test_a_file_that_is_no_log(tmp_path, key):
    path = tmp_path / "a.csv"
    path.write_text("question_id,question,references,answer\n1,Why?,so,so\n")
    with pytest.raises(UserTableError, match=f"is not a log with {next(iter(key))}; leave "):
        read_answers({"file": str(path), **NAMED, **key})

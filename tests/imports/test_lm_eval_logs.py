"""Sample logs of lm-evaluation-harness: answers and labels, and logs that are refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from import_answers import import_answers
from own_rows import ONE as NAMED
from own_rows import wanted, write_rows

from persistcal.readers.answer_files import read_answers
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study
from persistcal.store.user_files import UserTableError

# Written by version 0.4.13: a task with `repeats: 3` and the model `dummy`; and a task with the
# filters and the score of gsm8k, with four chains of thought as answers.
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


def test_each_response_is_read_once_for_any_number_of_filters(tmp_path):
    rows = read(tmp_path, [line(i, name) for name in ("strict", "loose") for i in range(2)])
    assert rows["references"].tolist() == [("Oslo", "Oslo city")] * 4
    assert rows["answer"].tolist() == ["Oslo", "Lima"] * 2
    assert rows["sample"].tolist() == [0, 1] * 2


@pytest.mark.parametrize(
    ("prompt", "temperature", "ways"),
    [
        ("prompt", 0.0, ""),
        ("Please: prompt", 0.0, "other prompts in 2 of 2 questions"),
        ("prompt", 0.7, "other settings (temperature 0.7, not temperature 0.0)"),
    ],
)
def test_a_version_that_was_asked_in_another_way_is_named(
    tmp_path, caplog, prompt, temperature, ways
):
    files = []
    for name, asked in (("a", ("prompt", 0.0)), ("b", (prompt, temperature))):
        text, degree = asked
        request = {"gen_args_0": {"arg_0": text, "arg_1": {"temperature": degree}}}
        answers = {"a": ["Oslo", "Lima"], "b": ["Rome", "Oslo"]}[name]
        lines = [line(i, arguments=request, resps=[[answers[i]]]) for i in range(2)]
        (tmp_path / name).mkdir()
        files.append(write_rows(tmp_path / name / "samples_quiz.jsonl", lines))
    sentence = f"b was asked with {ways} than a"
    study = read_study([str(tmp_path / name) for name in "ab"])
    assert (sentence in " ".join(study.notes)) == bool(ways)
    entries = [{"file": file, **NAMED, "checkpoint": Path(file).parent.name} for file in files]
    known = {"m1": {"a": False, "b": False}}
    import_answers(entries=entries, strategy="sample", known=known, wanted=wanted())
    assert (sentence in caplog.text) == bool(ways)


def test_a_log_of_the_harness_becomes_tables():
    questions, beams, _ = import_answers(
        entries=[{"file": str(REPEATED), **NAMED, "checkpoint": name} for name in "ab"],
        strategy="sample",
        known={"m1": {"a": False, "b": True}},
        wanted=wanted(),
    )
    expected = [f"Which country is {city} in?" for city in ("Oslo", "Lima")]
    assert questions["question"].tolist() == expected
    references = [list(accepted) for accepted in questions["references"]]
    assert references == [["Norway", "Kingdom of Norway"], ["Peru"]]
    answers_of_a = beams[beams["checkpoint"] == "a"]
    assert answers_of_a[["question_id", "beam", "text"]].values.tolist() == [
        [name, sample, "lol"] for name in "01" for sample in range(3)
    ]


@pytest.mark.parametrize(
    ("entry", "answers", "labels"),
    [
        # The model answers 0 + 1 with "It is 7.": strict-match finds no answer.
        ({"filter": "strict-match", "labels": "log"}, ["[invalid]", "3", "5", "7"],
         ["incorrect", "correct", "correct", "correct"]),
        ({"filter": "flexible-extract"}, ["7.", "3", "5", "7"], [""] * 4),
        ({}, ["It is 7.", *(f"We add {i}.\n#### {2 * i + 1}" for i in (1, 2, 3))], [""] * 4),
    ],
)  # fmt: skip
def test_a_filter_selects_the_answer_and_labels_can_come_from_the_log(entry, answers, labels):
    rows = read_answers({"file": str(FILTERED), **NAMED, **entry})
    assert rows["question_id"].tolist() == ["0", "1", "2", "3"]
    assert [re.sub(" and .", "", answer) for answer in rows["answer"]] == answers
    assert rows["label"].tolist() == labels


@pytest.mark.parametrize(
    "target",
    ["[1, 2]", "[-2,7]", "['a' 'b']", "[Verse 1]", "['\\x']", "[" + "-" * 100_000 + "1]"],
)
def test_a_target_that_only_looks_like_a_list_is_one_text(tmp_path, target):
    assert read(tmp_path, [line(0, target=target)])["references"][0] == (target,)


def test_a_target_that_is_a_text_of_the_document_is_one_reference(tmp_path):
    doc = {"question": "Which list?", "solution": "['a', 'b']"}
    rows = read(tmp_path, [line(0, doc=doc, target=doc["solution"])])
    assert rows["references"][0] == ("['a', 'b']",)


def test_arguments_are_found_by_their_names(tmp_path):
    request = {"arg_1": {"until": ["\n"]}, "arg_0": "prompt"}
    rows = read(tmp_path, [line(0, arguments={"gen_args_0": request})])
    assert rows["answer"].tolist() == ["Oslo", "Lima"]


@pytest.mark.parametrize(
    ("settings", "greedy"),
    [
        ({"temperature": 0.0}, True),
        ({"do_sample": False}, True),
        ({"do_sample": True, "temperature": 0.7}, False),
        ({}, False),
    ],
)
def test_logs_of_temperature_0_are_greedy_without_an_option(tmp_path, settings, greedy):
    request = {"gen_args_0": {"arg_0": "prompt", "arg_1": {"until": ["."], **settings}}}
    for version, text in (("v1", " a"), ("v2", " b")):
        lines = [line(n, resps=[[text]], arguments=request) for n in range(3)]
        write_rows(tmp_path / f"{version}.jsonl", lines)
    inputs = read_study([str(tmp_path / f"{version}.jsonl") for version in ("v1", "v2")])
    assert inputs.is_greedy == greedy
    assert any("temperature 0" in note for note in inputs.notes) == greedy


def test_logs_of_older_versions_are_read(tmp_path):
    old_line = line(0, arguments=[["prompt", {"until": ["\n"]}]], exact_match="1.0")
    old_line = {key: old_line[key] for key in old_line if key not in ("filter", "metrics")}
    assert read(tmp_path, [old_line])["answer"].tolist() == ["Oslo", "Lima"]
    old_line["resps"] = [[" Oslo"]]
    assert read(tmp_path, [old_line], labels="log")["label"].tolist() == ["correct"]


BY_LOG, STRICT = {"labels": "log"}, {"filter": "strict"}
SOLO = {"resps": [[" Oslo"]]}
SCORED, TWICE = (
    {f"gen_args_{i}": {"arg_0": "prompt", "arg_1": continuation} for i in range(2)}
    for continuation in ("a", {})
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
        ([line(0)], BY_LOG, "row 1 has one score for 2 answers"),
        ([line(0, "a", **SOLO), line(0, "b", **SOLO)], BY_LOG, "has scores of several"),
        ([line(0, **SOLO, exact_match=0.5)], BY_LOG, "has the scores 'exact_match: 0.5', but"),
        ([line(0, **SOLO, metrics=["f1", "em"])], BY_LOG, "labels: log. needs exact_match"),
        ([line(0, **SOLO, metrics=[])], BY_LOG, "labels: log. needs exact_match"),
    ],
)  # fmt: skip
def test_unclear_logs_are_refused_with_their_row(tmp_path, lines, entry, message):
    with pytest.raises(UserTableError, match=rf"samples_quiz\.jsonl: .*{message}"):
        read(tmp_path, lines, **entry)


def test_a_filter_of_few_documents_does_not_drop_other_documents(tmp_path):
    rows = read(tmp_path, [line(7, "rare"), *(line(i) for i in range(40))])
    assert rows["question_id"].nunique() == 40


@pytest.mark.parametrize("key", [{"filter": "strict"}, {"labels": "log"}])
def test_keys_of_logs_are_refused_for_other_files(tmp_path, key):
    path = tmp_path / "a.csv"
    path.write_text("question_id,question,references,answer\n1,Why?,so,so\n")
    with pytest.raises(UserTableError, match=f"is not a log with {next(iter(key))}; leave "):
        read_answers({"file": str(path), **NAMED, **key})


@pytest.mark.parametrize("filtered", [None, "strict"])
def test_confidences_that_replies_state_are_suggested_and_read(tmp_path, filtered):
    """The form is that of Humanity's Last Exam; every fourth reply is cut off before it."""
    for name, right in (("v1", 12), ("v2", 20)):
        lines = []
        for n in range(40):
            reply = f"Explanation: 10% is low.\n**Answer:** Oslo {name}\nConfidence: {n + 50} %"
            text = [[f"It is {name}"] if n % 4 == 3 else [reply]]
            score = {"resps": text, "filtered_resps": [name], "exact_match": float(n < right)}
            lines.append(line(n, filtered or "none", **score))
        write_rows(tmp_path / f"{name}.jsonl", lines)
    files = [str(tmp_path / f"{name}.jsonl") for name in ("v1", "v2")]
    found = read_study(files, Reading(labels="log", filter=filtered))
    assert sum("--stated reads it" in note for note in found.notes) == 1
    reading = Reading(labels="log", filter=filtered, stated=True, missing="0.5")
    study = read_study(files, replace(reading, estimators=["stated"]))
    rows = study.predictions["model", "dataset", "stated"]
    rows = (
        rows[rows["checkpoint"] == "v1"].astype({"question_id": int}).sort_values("question_id")
    )
    expected = [0.5 if n % 4 == 3 else (n + 50) / 100 for n in range(40)]
    assert rows["confidence"].tolist() == expected and rows["correct"].sum() == 12
    texts = ["v1", "v2"] if filtered else ["Oslo v1", "Oslo v2"]
    assert study.answers.query("question_id == '0'")["answer"].tolist() == texts
    assert not any("--stated" in note for note in study.notes)
    write_rows(tmp_path / "v1.jsonl", [line(n, resps=[["Oslo"]]) for n in range(40)])
    with pytest.raises(UserTableError, match=r"no reply says Confidence: 85%, so --stated"):
        read_study(files, Reading(stated=True))

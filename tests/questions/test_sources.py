"""Sources of questions: each is one function, and the schema requires its keys."""

import inspect
import json
from collections import Counter

import datasets
import pandas as pd
import pytest
from answer_tables import questions_table
from hub_layout import write_jeopardy, write_triviaqa
from prepare_atlas import prepare_atlas
from prepare_elements import prepare_elements

from persistcal.questions import sources
from persistcal.questions.catalogue import SOURCES
from persistcal.questions.question_list import limit_questions
from persistcal.store import artifacts
from persistcal.store.tables import TableError
from study.schema import load_schema

STUDY_KEYS = {"least", "states", "limit"}  # keys that the study adds


def required_keys():
    """Return the keys that the schema requires of a dataset, by its source."""
    dataset_schema = load_schema()["properties"]["datasets"]["additionalProperties"]
    rules = [rule for rule in dataset_schema["allOf"] if "source" in rule["if"]["properties"]]
    return {
        rule["if"]["properties"]["source"]["const"]: set(rule["then"]["required"])
        for rule in rules
    }


def test_the_catalogue_names_each_source_and_the_facts_of_the_demo():
    assert set(SOURCES) == set(required_keys()) == {*sources.SOURCES, "atlas", "elements"}


def test_each_source_keeps_as_many_examples_as_the_paper_describes():
    n_examples = {name: source.kept_for_prompts for name, source in SOURCES.items()}
    assert n_examples["triviaqa"] == n_examples["jeopardy"] == sources.N_FEW_SHOT == 10
    assert n_examples["bioasq"] == 5 and n_examples["file"] is None


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_declares_the_keys_that_it_reads(name):
    readers = {**sources.SOURCES, "atlas": prepare_atlas, "elements": prepare_elements}
    parameters = inspect.signature(readers[name]).parameters.values()
    read = {p.name: p.default is inspect.Parameter.empty for p in parameters}
    needed = {key for key, is_needed in read.items() if is_needed}
    assert needed - STUDY_KEYS == required_keys()[name] - {"train_datasets"}
    in_releases = {"test"} if name == "bioasq" else set()
    assert read.keys() - needed - STUDY_KEYS == {*SOURCES[name].optional} - in_releases


def test_a_new_source_is_one_function(monkeypatch):
    def read_numbers(*, n_test: int) -> pd.DataFrame:
        numbers = [
            sources.Question(f"What follows {n}?", [str(n + 1)]) for n in range(n_test + 1)
        ]
        splits = {"train": [0, 0], "test": [0, n_test]}
        return sources.number_questions("numbers", numbers[:-1], numbers[-1:], **splits)

    monkeypatch.setitem(sources.SOURCES, "numbers", read_numbers)
    settings = {"n_test": 3, "seed": 17, "least": {"test": 1}, "states": []}
    questions = sources.read_questions("numbers", settings)
    artifacts.check(questions, artifacts.QUESTIONS, "numbers")
    assert [list(r) for r in questions["references"]] == [["1"], ["2"], ["3"], ["4"]]
    assert questions["split"].tolist() == ["test"] * 3 + ["few_shot"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A few rows for each source, and its keys. A new source needs an entry."""
    folder = tmp_path_factory.mktemp("sources")
    rows = [(f"Question {n}?", f"Answer {n}") for n in range(160)]
    trivia = write_triviaqa(folder / "trivia", train=rows, validation=rows, test=rows)
    jeopardy = write_jeopardy(folder / "jeopardy", [("RIVERS", *row) for row in rows])
    entries = [
        {"id": question, "body": f"{kind} {question}", "type": kind, "exact_answer": [[answer]]}
        for kind in ("factoid", "list")
        for question, answer in rows
    ]
    own = {"question": "6 + 1?", "options": ["8", "7"], "gold": 1}
    (folder / "rivers.txt").write_text("RIVERS\n")
    (folder / "bioasq.json").write_text(json.dumps({"questions": entries}))
    (folder / "own.jsonl").write_text(json.dumps(own))
    hub = {"revision": "1a2b3c4", "train": [0, 2], "test": [2, 5]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "datasets"))
        yield {
            "triviaqa": {**hub, "repo": trivia},
            "jeopardy": {**hub, "repo": jeopardy, "categories": str(folder / "rivers.txt")},
            "bioasq": {"file": str(folder / "bioasq.json")},
            "file": {"file": str(folder / "own.jsonl"), "n_test": 1, "least": {"test": 1}},
        }


@pytest.mark.parametrize("name", sources.SOURCES)
def test_a_source_returns_test_questions_and_as_many_examples_as_it_promises(settings, name):
    questions = sources.read_questions(name, settings[name])
    n_examples = Counter(questions.loc[questions["split"] == "few_shot", "category"])
    assert set(n_examples.values()) <= {SOURCES[name].kept_for_prompts}
    assert (len(n_examples) > 1) == SOURCES[name].examples_by_category


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda q: q.drop(columns="category"), "column 'category' is missing"),
        (lambda q: q.assign(index=q["index"].astype(str) + "a"), "has the wrong type"),
        (lambda q: q.assign(question_id="1"), "two rows have the key"),
        (lambda q: q.assign(split="dev"), "a split that is not train, test"),
        (lambda q: q[q["split"] == "few_shot"], "no question of the split test"),
        (lambda q: q.assign(question=" "), "no question text"),
        (lambda q: q.assign(question="Twice?"), "the text of an earlier question"),
        (lambda q: q.assign(index=0), "the index of an earlier question"),
        (lambda q: q.assign(references=[[]] * len(q)), "no reference"),
        (lambda q: q.assign(references=[[""]] * len(q)), "no reference"),
        (
            lambda q: q.assign(options=[["1", "2"]] * len(q), gold=1),
            "a reference that is not option gold",
        ),
    ],
)
def test_a_source_that_returns_a_wrong_table_is_refused(settings, monkeypatch, change, fault):
    questions = sources.read_questions("bioasq", settings["bioasq"])
    monkeypatch.setitem(sources.SOURCES, "wrong", lambda: change(questions))
    with pytest.raises((TableError, ValueError), match=f"source 'wrong'.*{fault}"):
        sources.read_questions("wrong", {})


def test_a_limit_keeps_the_first_questions_of_each_split_that_are_not_excluded():
    questions = questions_table(n_train=4, n_test=4)
    questions.loc[0, "excluded"] = True
    questions.loc[7, "split"] = "few_shot"
    limited = limit_questions(questions.iloc[::-1], 2).sort_values("index")
    # q0 is excluded: q1 and q2 are the first two of train, q4 and q5 of test
    expected = ["train", "train", "train", "unused", "test", "test", "unused", "few_shot"]
    assert limited["split"].tolist() == expected
    assert limit_questions(questions, None) is questions

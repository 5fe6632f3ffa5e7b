"""Sources of questions: each is one function, and the schema requires its keys."""

import inspect

import pandas as pd
import pytest
from prepare_atlas import prepare_atlas
from prepare_elements import prepare_elements

from persistcal.questions import sources
from persistcal.questions.catalogue import SOURCES
from persistcal.store import artifacts
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
    monkeypatch.setattr(sources, "SOURCES", dict(sources.SOURCES))

    @sources.source("numbers")
    def read_numbers(*, n_test: int) -> pd.DataFrame:
        numbers = [
            sources.Question(f"What follows {n}?", [str(n + 1)]) for n in range(n_test + 1)
        ]
        splits = {"train": [0, 0], "test": [0, n_test]}
        return sources.number_questions("numbers", numbers[:-1], numbers[-1:], **splits)

    settings = {"n_test": 3, "seed": 17, "least": {"test": 1}, "states": []}
    questions = sources.read_questions("numbers", settings)
    artifacts.check(questions, artifacts.QUESTIONS, "numbers")
    assert [list(r) for r in questions["references"]] == [["1"], ["2"], ["3"], ["4"]]
    assert questions["split"].tolist() == ["test"] * 3 + ["few_shot"]

"""Sources of questions: each is one function, whose keys the schema requires."""

import inspect

import pandas as pd
import pytest

from persistcal.questions import sources
from persistcal.store import artifacts
from study.schema import load_schema, question_sources

OF_STUDY = {"least", "states"}  # what the study adds to the keys of a dataset


def required_keys():
    """Keys that the schema requires of a dataset, by its source."""
    about = load_schema()["properties"]["datasets"]["additionalProperties"]
    rules = [rule for rule in about["allOf"] if "source" in rule["if"]["properties"]]
    return {
        rule["if"]["properties"]["source"]["const"]: set(rule["then"]["required"])
        for rule in rules
    }


def test_the_schema_names_each_source_and_the_facts_of_the_demo():
    assert set(question_sources()) == {*sources.SOURCES, "atlas", "elements"}


@pytest.mark.parametrize("name", sources.SOURCES)
def test_the_schema_requires_the_keys_of_a_source(name):
    parameters = inspect.signature(sources.SOURCES[name]).parameters.values()
    needed = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    assert needed - OF_STUDY == required_keys()[name] - {"train_datasets"}


def test_a_further_source_is_one_function(monkeypatch):
    monkeypatch.setattr(sources, "SOURCES", dict(sources.SOURCES))

    @sources.source("numbers")
    def read_numbers(*, n_test: int) -> pd.DataFrame:
        asked = [
            sources.Question(f"What follows {n}?", [str(n + 1)]) for n in range(n_test + 1)
        ]
        splits = {"train": [0, 0], "test": [0, n_test]}
        return sources.number_questions("numbers", asked[:-1], asked[-1:], **splits)

    settings = {"n_test": 3, "seed": 17, "least": {"test": 1}, "states": []}
    questions = sources.read_questions("numbers", settings)
    artifacts.check(questions, artifacts.QUESTIONS, "numbers")
    assert [list(r) for r in questions["references"]] == [["1"], ["2"], ["3"], ["4"]]
    assert questions["split"].tolist() == ["test"] * 3 + ["few_shot"]

"""Sources of questions: each is one function, whose keys the schema requires."""

import inspect

import pandas as pd
import pytest

from persistcal.questions import sources
from persistcal.questions.catalogue import SOURCES
from persistcal.store import artifacts
from study.schema import load_schema

OF_STUDY = {"least", "states"}  # what the study adds to the keys of a dataset


def required_keys():
    """Keys that the schema requires of a dataset, by its source."""
    about = load_schema()["properties"]["datasets"]["additionalProperties"]
    rules = [rule for rule in about["allOf"] if "source" in rule["if"]["properties"]]
    return {
        rule["if"]["properties"]["source"]["const"]: set(rule["then"]["required"])
        for rule in rules
    }


def test_the_catalogue_names_each_source_and_the_facts_of_the_demo():
    assert set(SOURCES) == set(required_keys()) == {*sources.SOURCES, "atlas", "elements"}


def test_questions_kept_for_prompts_are_the_numbers_of_the_protocol():
    kept = {name: source.kept_for_prompts for name, source in SOURCES.items()}
    assert kept["triviaqa"] == kept["jeopardy"] == sources.N_FEW_SHOT == 10
    assert kept["bioasq"] == 5 and kept["file"] is None


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

"""The part of the config that the page shows."""

import pytest

from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report.page.contents import Shown, Stage
from persistcal.store.jobs import Job, execute
from study.page import shown_on_page, used_config
from study.study import Study

TABLE = {"layout": "models_as_blocks", "blocks": [{"rows": [{"estimator": "oracle"}]}]}
CONFIG = {
    "results": "out",
    "study": {
        **{"models": ["mine"], "datasets": ["quiz"], "estimators": ["oracle", "gcm"]},
        **{"tables": ["main"], "complete_tables": False, "pairs": "all", "predictions": None},
    },
    "models": {
        "mine": {"earlier": ["a"], "evaluation": ["b", "c", "d"]},
        "qwen": {},
        "olmo": {},
    },
    "datasets": {
        "quiz": {"train_datasets": ["trivia"], "min_contrast": 5},
        "trivia": {"min_contrast": 5},
        "bioasq": {"min_contrast": 9},
    },
    "verifiers": {"gcm": {"model": "qwen"}},
    "estimators": {"oracle": {}, "gcm": {"verifier": "gcm"}},
    "recipes": {"transfer": {}},
    "tables": {"main": TABLE, "all_estimators": TABLE},
    "analyses": {"transfer": {"models": ["olmo"], "recipes": {"transfer": "Alone"}}},
    "judge": {"backend": "openai", "model": "gpt"},
    "decoding": {"strategy": "beams"},
    "evaluation": {
        "replicates": 200,
        "seed": 3,
        "min_direction": 7,
        "conditioning": ["odds"],
        "threshold": {"precision": 0.8, "delta": 0.2},
        "margin": {"accuracy": 0.01, "calibration": 0.02},
    },
}
SETTINGS = EvaluationSettings(
    min_contrast=5,
    conditionings=["odds"],
    min_direction=7,
    n_replicates=200,
    seed=3,
    precision=0.8,
    delta=0.2,
)
LABELS = {"models": {"mine": "Mine"}, "datasets": {"quiz": "Quiz"}, "estimators": {}}


def study_of(*estimators, **keys):
    """The study above with some estimators and other keys of the config."""
    return Study({**CONFIG, "study": {**CONFIG["study"], "estimators": estimators}, **keys})


def test_the_page_shows_only_config_entries_that_the_study_uses():
    study = study_of("oracle")
    assert used_config(study) == {
        **study.config,
        "models": {"mine": CONFIG["models"]["mine"]},
        "datasets": {name: CONFIG["datasets"][name] for name in ("quiz", "trivia")},
        "verifiers": {},
        "estimators": {"oracle": {}},
        "recipes": {},
        "tables": {"main": TABLE},
        "analyses": {},
    }
    assert list(used_config(study_of("gcm"))["models"]) == ["mine", "qwen"]
    analyses = {"transfer": {"models": ["mine"], "recipes": ["transfer"]}}
    assert used_config(study_of("oracle", analyses=analyses))["recipes"] == {"transfer": {}}


def test_the_page_shows_the_datasets_that_complete_tables_add():
    abroad = {**TABLE, "transfer": True, "datasets": ["bioasq"]}
    datasets = {**CONFIG["datasets"], "bioasq": {"min_contrast": 9, "train_datasets": ["quiz"]}}
    chosen = {**CONFIG["study"], "tables": ["abroad"], "complete_tables": True}
    study = study_of("oracle", tables={"abroad": abroad}, datasets=datasets, study=chosen)
    assert list(used_config(study)["datasets"]) == ["quiz", "trivia", "bioasq"]


def test_a_study_of_predictions_shows_no_estimators_of_the_catalogue():
    study = Study({**CONFIG, "study": {**CONFIG["study"], "predictions": "mine.csv"}})
    config = used_config(study)
    assert (config["estimators"], config["verifiers"]) == ({}, {})


def page_record(further=None, **checkpoints):
    """Return the record that the script of the page receives."""
    mine = {**CONFIG["models"]["mine"], "checkpoints": checkpoints}
    config = {**CONFIG, "models": {"mine": mine}, "datasets": {"quiz": {"min_contrast": 5}}}
    config |= further or {}
    records = []

    def take(*, shown: Shown) -> None:
        records.append(shown)

    settings = {"shown": shown_on_page(Study(config), LABELS)}
    execute(take, Job({}, {}, settings, threads=1))
    return records[0]


def test_the_page_receives_the_settings_of_the_config():
    record = page_record(c={"label": 3, "tokens": 1e9})
    assert record.checkpoints == {
        "mine": {"a": Stage("a"), "b": Stage("b"), "c": Stage("3", 1e9), "d": Stage("d")}
    }
    assert record.earlier == {"mine": ["a"]}
    assert record.settings == {"quiz": SETTINGS}
    assert record.judge == "openai (gpt)"
    assert (record.main, record.descriptions) == (["oracle"], {"main": TABLE})
    assert (record.results, record.labels) == ("out", LABELS)
    assert (record.analyses, record.recipes) == ([], {"transfer": "Alone"})


@pytest.mark.parametrize(
    ("further", "judge"),
    [
        ({"judge": {"backend": "lexical"}}, "lexical"),
        ({"decoding": {"strategy": "options"}}, "none (the right options of the questions)"),
        ({"study": {**CONFIG["study"], "source": "release"}}, "none (labels of the files)"),
    ],
)
def test_the_page_names_a_judge_only_if_it_labelled_answers(further, judge):
    assert page_record(further).judge == judge


@pytest.mark.parametrize(
    ("states", "pairs"),
    [
        ({"c": {"examples": 1}}, ["bc", "cd"]),
        ({"c": {"seed": 5}, "d": {"seed": 5}}, ["bc", "bd"]),
        ({"c": {"seed": 5}, "d": {"seed": 5, "chat": True}}, ["bc"]),
        (
            {
                "b": {"revision": "x"},
                "c": {"revision": "y", "examples": 1},
                "d": {"revision": "z", "examples": 2},
            },
            [],
        ),
        ({"a": {"examples": 1}}, []),
        ({}, []),
    ],
)
def test_a_control_pair_has_equal_weights_and_different_prompts_or_seeds(states, pairs):
    """A revision of b means that its weights differ from the weights of c and d."""
    assert page_record(**states).controls["mine"] == [tuple(pair) for pair in pairs]

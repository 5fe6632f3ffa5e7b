"""The overlay with every choice as released, and what a comparison says of them."""

import copy

import pytest
import yaml
from workflow_runs import ROOT

from study.check import check_config
from study.defaults import over_defaults
from study.released import OVERLAY, settings_compared

RELEASED = yaml.safe_load((ROOT / OVERLAY).read_text(encoding="utf-8"))


@pytest.fixture
def config():
    return over_defaults({}, ROOT)


def test_the_overlay_is_a_config_of_the_papers_study_and_changes_what_is_documented():
    config = over_defaults(copy.deepcopy(RELEASED), ROOT)
    check_config(config)
    defaults = settings_compared(over_defaults({}, ROOT), ROOT).split("; ")
    changed = set(settings_compared(config, ROOT).split("; ")) - set(defaults)
    assert {setting.split(":")[0] for setting in changed} == {
        "equivalence.dtype",  # of the library by default, which is float32
        "judge.form",
        "judge.request.reasoning_effort",
        "judge.request.max_completion_tokens",
        "training.random_streams",
        "scoring.head",
    }


def test_a_comparison_names_what_was_chosen(config):
    config["decoding"]["weighting"] = "probability"
    config["estimators"]["gcm_posthoc"]["posthoc"] = "platt"
    said = settings_compared(config, ROOT).split("; ")
    assert 'decoding.weighting: "probability"' in said
    assert 'judge.form: "chat"' in said
    assert 'estimators.gcm_posthoc.posthoc: "platt"' in said
    released = settings_compared(over_defaults(copy.deepcopy(RELEASED), ROOT), ROOT)
    assert {'judge.form: "released"', 'scoring.head: "model"'} < set(released.split("; "))


def test_of_what_was_made_elsewhere_only_the_choices_made_here_are_named(config):
    config["study"] |= {"source": "release", "archive": "a.tar.zst"}
    assert settings_compared(config, ROOT) == (
        'estimators.self_consistency_posthoc.posthoc: "isotonic"; '
        'estimators.gcm_posthoc.posthoc: "isotonic"'
    )
    config["study"]["predictions"] = "mine.csv"
    assert settings_compared(config, ROOT) == "study.predictions: mine.csv"

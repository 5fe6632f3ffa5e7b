"""The overlay with every choice as released, and what a comparison says of them."""

import pytest
from configs import overlaid, shipped
from workflow_runs import ROOT

from study.check import check_config
from study.released import settings_compared, shares_cells


@pytest.fixture
def config():
    return overlaid()


def settings(config):
    return set(settings_compared(config, ROOT).split("; "))


def test_the_overlay_is_a_config_of_the_papers_study_and_changes_what_is_documented():
    config = overlaid(shipped("as_released"))
    check_config(config)
    changed = settings(config) - settings(overlaid())
    assert {setting.split(":")[0] for setting in changed} == {
        "equivalence.dtype",  # of the library by default, which is float32
        "scoring.head",
    }


def test_a_comparison_names_what_was_chosen(config):
    config["decoding"]["weighting"] = "probability"
    config["estimators"]["gcm_posthoc"]["posthoc"] = "platt"
    assert settings(config) > {
        'decoding.weighting: "probability"',
        'judge.undecided: "stop"',
        'estimators.gcm_posthoc.posthoc: "platt"',
    }
    assert 'scoring.head: "model"' in settings(overlaid(shipped("as_released")))


def test_of_what_was_made_elsewhere_only_the_choices_made_here_are_named(config):
    config["study"] |= {"source": "release", "archive": "a.tar.zst"}
    assert settings_compared(config, ROOT) == (
        'estimators.self_consistency_posthoc.posthoc: "isotonic"; '
        'estimators.gcm_posthoc.posthoc: "isotonic"'
    )
    config["study"]["predictions"] = "mine.csv"
    assert settings_compared(config, ROOT) == "study.predictions: mine.csv"


def test_only_studies_of_the_papers_models_and_datasets_are_compared():
    paper = ROOT / "resources/paper/results.csv"
    labels = {"models": {"mine": "Olmo 3 7B"}, "datasets": {"own": "TriviaQA", "two": "Quiz"}}
    assert shares_cells(labels, paper)
    assert not shares_cells({**labels, "datasets": {"two": "Quiz"}}, paper)
    assert not shares_cells({**labels, "models": {"olmo3-7b": "Atlas"}}, paper)

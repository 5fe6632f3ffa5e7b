"""The overlay with the release's settings, and the settings that a comparison lists."""

import pytest
from configs import overlaid, shipped
from workflow_runs import ROOT

from reproduce.released import settings_compared, shares_cells
from study.check import check_config


@pytest.fixture
def config():
    return overlaid()


def compared_settings(config):
    return set(settings_compared(config, ROOT).split("; "))


def test_the_overlay_of_the_release_changes_only_the_documented_keys():
    config = overlaid(shipped("as_released"))
    check_config(config)
    changed = compared_settings(config) - compared_settings(overlaid())
    assert {setting.split(":")[0] for setting in changed} == {
        "equivalence.dtype",  # the library's default is float32
        "scoring.head",
    }


def test_a_comparison_lists_the_chosen_settings(config):
    config["decoding"]["weighting"] = "probability"
    config["estimators"]["gcm_posthoc"]["posthoc"] = "platt"
    assert compared_settings(config) > {
        'decoding.weighting: "probability"',
        'judge.undecided: "stop"',
        'estimators.gcm_posthoc.posthoc: "platt"',
    }
    assert 'scoring.head: "model"' in compared_settings(overlaid(shipped("as_released")))


def test_a_comparison_of_imported_results_lists_only_settings_applied_here(config):
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

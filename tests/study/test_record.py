"""The record of a study: a config that gives it again, and commits of the paper's models."""

import json
from pathlib import Path

import pytest
import yaml
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import check_pinned
from persistcal.store.files import DamagedFileError
from study.config_files import over_defaults, refuse_misread
from study.record import config_to_record, pin_revisions, read_pins, write_study

ROOT = Path(__file__).parents[2]
OLMO = "allenai/Olmo-3-1025-7B"


def given(*names):
    """Return configs of the project, laid over each other as Snakemake does."""
    config = {}
    for name in names:
        update_config(config, load_configfile(ROOT / "config" / f"{name}.yaml"))
    return config


@pytest.mark.parametrize(
    "config",
    [
        given("atlas"),
        given("atlas_pretraining", "lab"),
        given("one_gpu"),
        given("whole_paper"),
        {
            "study": {"predictions": "mine.csv", "models": ["m"]},
            "models": {"m": {"evaluation": ["a"]}},
        },
        {"study": {"answers": "mine.csv", "estimators": ["said"]}},
    ],
)
def test_a_recorded_config_is_read_as_the_config_that_was_given(tmp_path, config):
    write_study(config_to_record(config, ROOT), tmp_path, ["snakemake", "all"])
    write_study(config_to_record(config, ROOT), tmp_path, ["snakemake"])
    text = (tmp_path / "study.yaml").read_text()
    refuse_misread([tmp_path / "study.yaml"])
    assert [line.rpartition(": ")[2] for line in text.splitlines()[:2]] == [
        "snakemake all",
        "snakemake",
    ]
    assert over_defaults(yaml.safe_load(text), ROOT) == over_defaults(config, ROOT)


@pytest.fixture
def project(tmp_path):
    """Return a folder with the project's config, and results of two resolved revisions."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    folder = tmp_path / "results" / "revisions" / "olmo"
    folder.mkdir(parents=True)
    for name, repo in {"own": "me/mine", "step": OLMO}.items():
        record = {"repo": repo, "revision": "stage1-step141000", "commit": "a1"}
        (folder / f"{name}.json").write_text(json.dumps(record))
    return tmp_path


def test_the_first_run_pins_the_commits_of_the_papers_models_only(project):
    assert read_pins(project) == {}
    pin_revisions(project / "results", project)
    assert read_pins(project) == {OLMO: {"stage1-step141000": "a1"}}


def test_another_commit_than_the_pinned_one_is_refused(project):
    pin_revisions(project / "results", project)
    first, moved, other = (
        Checkpoint(OLMO, revision, commit, {}, {})
        for revision, commit in [
            ("stage1-step141000", "a1"),
            ("stage1-step141000", "b2"),
            ("main", "b2"),
        ]
    )
    check_pinned(first, read_pins(project))
    check_pinned(other, read_pins(project))
    with pytest.raises(DamagedFileError, match=r"is now commit b2.*revisions.yaml has a1"):
        check_pinned(moved, read_pins(project))

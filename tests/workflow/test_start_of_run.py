"""How a run begins: profiles that are read, file systems and plans that are refused."""

import os
import shutil
import time

import pytest
import yaml
from workflow_runs import ROOT, run, snakemake

from study.preflight import too_much
from study.resources import Cost

BARE = "none"  # as without --profile
OWN = [ROOT / "config" / "own_predictions.yaml"]
METRICS = "results/own_predictions/metrics.csv"


def with_file(folder):
    (folder / "config").mkdir()
    shutil.copy(ROOT / "config/example_predictions.csv", folder / "config")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    with_file(folder)
    snakemake(folder, METRICS, "--cores", "2", configs=OWN, profile=BARE)
    return folder


@pytest.mark.parametrize("profile", [BARE, ROOT / "profiles/laptop", ROOT / "profiles/slurm"])
def test_a_checkout_that_changes_nothing_reruns_nothing(evaluated, profile):
    seconds = time.time()
    for path in [*ROOT.glob("workflow/scripts/**/*.py"), ROOT / "Snakefile"]:
        os.utime(path, (seconds, seconds))
    arguments = [METRICS, "--dry-run", "--cores", "1"]
    assert "Nothing to be done" in snakemake(
        evaluated, *arguments, configs=OWN, profile=profile
    )


def test_the_default_profile_sets_only_the_rerun_triggers_of_the_other_profiles():
    default, *further = (
        yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
        for name in ("default", "laptop", "slurm")
    )
    assert list(default) == ["rerun-triggers"] and "code" not in default["rerun-triggers"]
    assert all(p["rerun-triggers"] == default["rerun-triggers"] for p in further)


@pytest.mark.parametrize("usage", ["none", "sources"])
def test_files_that_are_transferred_to_each_job_are_refused(tmp_path, usage):
    with_file(tmp_path)
    done = run(tmp_path, "--dry-run", "--shared-fs-usage", usage, configs=OWN)
    assert done.returncode and "neither a default storage nor the transfer" in done.stdout


def test_the_papers_study_stops_on_a_machine_without_a_gpu(tmp_path):
    if any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd"))):
        pytest.skip("this machine has a GPU")
    done = run(tmp_path, "--cores", "2", profile=BARE)
    assert done.returncode
    # 100 + 100 + 6 + 6 + 66 jobs on a GPU, 649 GB and 453,600 requests: docs/cluster.md
    message = "278 need a GPU, and this machine has none; they download 649 GB and send 453,600"
    assert message in done.stdout and "`make demo` is the study for a laptop" in done.stdout
    assert not list(tmp_path.rglob("*.json")) and not list(tmp_path.rglob("*.parquet"))


def test_a_real_run_that_costs_or_lacks_too_much_starts_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run(tmp_path, "--cores", "2", "--resources", "gpu=1", profile=BARE)
    assert done.returncode
    reasons = done.stdout.split("Nothing has started:")[1]
    assert "`judge: {max_cost: 680}`" in reasons  # 453,600 requests
    assert "OPENAI_API_KEY is empty" in reasons and "training14b.json is missing" in reasons
    assert not list(tmp_path.rglob("*.json")) and not list(tmp_path.rglob("*.parquet"))


def test_a_plan_without_a_gpu_job_starts():
    assert too_much(Cost(jobs=1)) == ""


APPTAINER = """\
#!/bin/sh
[ "$1" = --version ] && echo "apptainer version 1.4.0" && exit
echo "$@" >> calls.txt
exit 3
"""


def test_jobs_run_in_the_image_of_the_config(tmp_path, monkeypatch):
    """A stub of Apptainer writes down what it is asked to run, and fails."""
    with_file(tmp_path)
    for name in ("apptainer", "singularity"):
        (tmp_path / name).write_text(APPTAINER)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "mine.sif").touch()
    (tmp_path / "mine.yaml").write_text(f"container: {tmp_path / 'mine.sif'}")
    words = [METRICS, "--sdm", "apptainer", "--cores", "1"]
    run(tmp_path, *words, configs=[*OWN, tmp_path / "mine.yaml"], profile=BARE)
    calls = (tmp_path / "calls.txt").read_text()
    assert calls.startswith("exec ") and f" {tmp_path / 'mine.sif'} " in calls

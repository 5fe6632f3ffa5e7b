"""This workflow in another one: as a module, from another folder, and from a repository."""

import re
import shutil
import subprocess
import zipfile

import pandas as pd
import pytest
import warm_python
import yaml
from own_study import write_study
from snakemake.utils import update_config
from workflow_runs import ATLAS, ROOT, planned

SNAKEFILE = """
configfile: "outer.yaml"


module pc:
    snakefile:
        {snakefile}
    config:
        config["pc"]
{further}


use rule * from pc as pc_*


rule summarise:
    input:
        rules.pc_collect_results.output.metrics,
    output:
        "summary.txt",
    default_target: True
    shell:
        "wc -l < {{input}} > {{output}}"
"""
WHOLE = re.DOTALL | re.MULTILINE
LOCAL = f'"{ROOT}/Snakefile"'


def outer(folder, config, snakefile=LOCAL, further=""):
    """Write another workflow around the study `config` (as YAML below `pc`)."""
    folder.mkdir(exist_ok=True)
    text = SNAKEFILE.format(snakefile=snakefile, further=further)
    (folder / "workflow").mkdir(exist_ok=True)
    (folder / "workflow" / "Snakefile").write_text(text)
    (folder / "outer.yaml").write_text(f"pc:\n{config}")
    return folder


def indented(path):
    return "".join(f"  {line}\n" for line in path.read_text().splitlines())


def run(folder, *arguments, environment=None, check=True, profile="laptop"):
    words = [*arguments, "--profile", ROOT / "profiles" / profile, "--cores", "1"]
    done = warm_python.run("snakemake", words, 600, folder=folder, **(environment or {}))
    if check:
        assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def run_study(folder, *arguments, configs, **options):
    files = [str(path) for path in configs]
    snakefile = ("-s", str(ROOT / "Snakefile"))
    return run(folder, *snakefile, *arguments, "--configfile", *files, **options)


@pytest.fixture
def own_workflow(tmp_path):
    """Somebody's workflow around predictions of theirs."""
    write_study(tmp_path / "own")
    return outer(tmp_path / "own", indented(tmp_path / "own" / "config.yaml"))


@pytest.mark.slow
def test_a_module_makes_the_files_of_the_study(own_workflow):
    run(own_workflow, "summary.txt", "out/tables/all_estimators.tex")
    metrics = pd.read_csv(own_workflow / "out" / "metrics.csv")
    assert (own_workflow / "summary.txt").read_text() == f"{len(metrics) + 1}\n"
    # The module makes the same files from the same parameters as the study.
    target = "out/tables/all_estimators.tex"
    run(own_workflow, target, "--report", "report.zip")
    with zipfile.ZipFile(own_workflow / "report.zip") as report:
        page = report.read("report/report.html").decode()
    assert 'categories = {"Tables": ' in page and "All metrics of every estimator." in page
    dry_run = run_study(own_workflow, "-n", target, configs=[own_workflow / "config.yaml"])
    assert "Nothing to be done" in dry_run


@pytest.mark.slow
def test_a_module_plans_all_jobs_of_the_study(tmp_path):
    """Prompts, scripts and defaults are found, and rules request their resources."""
    config = {}
    for path in ATLAS:
        update_config(config, yaml.safe_load(path.read_text()))
    (tmp_path / "both.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    folder = outer(tmp_path / "outer", indented(tmp_path / "both.yaml"))
    as_module = run(folder, "-n", "pc_study").replace("pc_", "")
    expected = planned(run_study(folder, "-n", configs=ATLAS))
    assert len(expected) > 20
    assert planned(as_module) == expected


@pytest.mark.slow
def test_jobs_of_a_module_ask_for_the_gpus_of_their_own_rule(tmp_path):
    """Snakemake hands over the name that the rule has in the outer workflow."""
    folder = outer(tmp_path / "outer", "  results: results\n")
    (folder / "none.yaml").write_text("results: results")
    target = "results/beams/olmo3-32b/step66000/triviaqa/test.parquet"
    as_module = run(folder, "-n", target, profile="slurm").replace("pc_", "")
    snakefile = folder / "workflow" / "Snakefile"
    changed_rule = (
        "\nuse rule generate_beams from pc as pc_generate_beams with:\n    threads: 2\n"
    )
    snakefile.write_text(snakefile.read_text() + changed_rule)
    changed = run(folder, "-n", target, profile="slurm").replace("pc_", "")
    expected = run_study(folder, "-n", target, profile="slurm", configs=[folder / "none.yaml"])
    assert "gpu=2" in asked(expected)  # 32 billion weights of 2 bytes, on GPUs of 80 GB
    assert asked(as_module) == asked(changed) == asked(expected)


def asked(dry_run):
    [resources] = re.findall(r"^rule generate_beams:.*?resources: (.*?)$", dry_run, WHOLE)
    return set(resources.split(", "))


def test_a_key_that_stands_twice_in_the_modules_config_is_refused(own_workflow):
    folder = outer(own_workflow, indented(own_workflow / "config.yaml") + "  results: other\n")
    text = run(folder, "-n", check=False)
    assert "outer.yaml: pc.results stands in line " in text and "write it once" in text


def test_a_prefix_is_refused(own_workflow):
    write = outer(
        own_workflow, indented(own_workflow / "config.yaml"), further="    prefix:\n        'x'"
    )
    text = run(write, "-n", check=False)
    assert "leave it out and set `results` in the module's config" in text


@pytest.mark.slow
def test_a_module_can_come_from_a_repository_by_name(own_workflow, tmp_path):
    """As snakedeploy writes it; git finds the host's repository in a folder."""
    repository = tmp_path / "hosted" / "somebody" / "pc.git"
    # The resources of atlas are large.
    names = "Snakefile config envs persistcal atlas study reproduce tools workflow".split()
    for name in (*names, "resources/paper"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        repository.mkdir(parents=True, exist_ok=True)
        copy(source, repository / name)
    identity = ["-c", "user.name=Some Body", "-c", "user.email=some@body"]
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        [*identity, "commit", "-q", "-m", "All of it"],
        ["tag", "v1"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    environment = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/hosted/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
    }
    named = 'github("somebody/pc.git", path="workflow/Snakefile", tag="v1")'
    folder = outer(own_workflow, indented(own_workflow / "config.yaml"), snakefile=named)
    run(folder, environment=environment)
    metrics = pd.read_csv(own_workflow / "out" / "metrics.csv")
    assert (own_workflow / "summary.txt").read_text() == f"{len(metrics) + 1}\n"

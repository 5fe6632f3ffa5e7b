"""Studies that run no model need no package that only models need."""

import tomllib
from importlib import metadata

import pandas as pd
import pytest
from packaging.requirements import Requirement
from programs import python
from workflow_runs import ROOT

import persistcal
from persistcal.api.command import main
from persistcal.store import artifacts
from tools import envs

pytestmark = pytest.mark.slow


def named(requirements):
    return {Requirement(line).name for line in requirements}


# Snakemake loads the plugins that it finds
BY_SNAKEMAKE = {"snakemake-executor-plugin-slurm", *named(metadata.requires("snakemake"))}


@pytest.fixture(scope="module")
def environment():
    """A Python with the library and its extra `workflow`, and nothing else that we list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    absent = named(envs.listed("requirements.txt")) - BY_SNAKEMAKE
    absent -= named(project["dependencies"] + extras["workflow"])
    assert {"torch", "transformers", "peft", "safetensors"} < absent
    return {
        "PYTHONPATH": str(ROOT / "tests/helpers/absent_packages"),
        "ABSENT_PACKAGES": " ".join(name.replace("-", "_") for name in absent),
    }


def test_packages_for_models_are_absent_in_these_tests(environment):
    for code in ("import torch", "from importlib.metadata import version; version('torch')"):
        output = python("-c", code, status=1, **environment)
        assert "torch" in output and "NotFoundError" in output


def test_the_cost_of_a_study_on_one_gpu_is_printed_without_torch(environment):
    words = ["-m", "snakemake", "--configfile", "config/one_gpu.yaml", "--dry-run", "--nolock"]
    output = python(*words, "--quiet", "rules", folder=ROOT, **environment)
    *_, table, notes, downloads = output.strip().split("\n\n")
    assert table in (ROOT / "docs" / "one-gpu.md").read_text(encoding="utf-8"), table
    # seven checkpoints of two bytes a weight: 7 x 2 x 3.08 = 43.12 GB
    assert "Downloads: 43 GB" in downloads
    # 3 further copies of 6.15 GB
    assert "4 copies of SmolLM3 3B (6.1 GB each) are on the GPU together" in notes
    assert "adds 18.4 GB" in notes


@pytest.mark.parametrize(
    ("example", "min_contrast"), [("own_predictions", 50), ("own_answers", 10)]
)
def test_the_example_gives_tables_and_page(example, min_contrast, environment, tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    (tmp_path / "fast.yaml").write_text("evaluation: {replicates: 200}\n")
    words = [ROOT / "tools" / "fork_jobs.py", "--snakefile", ROOT / "Snakefile"]
    words += ["--directory", tmp_path, "--profile", ROOT / "profiles" / "laptop"]
    words += ["--cores", "2"]
    out = tmp_path / "results" / example
    shown = ["tables/all_estimators.tex", "figures/full_vs_contrast.png", "report/index.html"]
    if example == "own_predictions":  # not all figures twice
        words += [f"results/{example}/{made}" for made in shown]
    words += ["--configfile", ROOT / "config" / f"{example}.yaml", tmp_path / "fast.yaml"]
    python(*words, **environment)
    assert all((out / made).stat().st_size > 0 for made in shown)
    metrics = artifacts.read_csv(out / "metrics.csv", artifacts.METRICS)
    significance = artifacts.read_csv(out / "significance.csv", artifacts.SIGNIFICANCE)
    assert metrics["value"].notna().all()
    assert {*significance["best"], *significance["other"]} == set(metrics["estimator"])

    # The halves of five samples are crossed; predictions have one ask
    claims = artifacts.read_csv(out / "claims.csv", artifacts.CLAIMS)
    assert set(claims["basis"]) - {""} == {"cross" if example == "own_answers" else "samples"}

    # The command makes the same of the same file, to the last bit.
    file = ROOT / "config" / f"{example.replace('own', 'example')}.csv"
    by_command = "by_command"
    words = [file, "--out", tmp_path / by_command, "--replicates", "200"]
    further = ["--min-contrast", str(min_contrast), "--precision", "0.8"]
    further += ["--halvings", "1"] if example == "own_answers" else []
    python("-m", "persistcal", "compare", *words, *further, folder=ROOT, **environment)
    with pytest.raises(SystemExit) as end:
        main(["threshold", *map(str, words), "--precision", "0.8"])
    assert end.value.code == 0
    made = sorted((tmp_path / by_command).glob("*.csv"))
    assert {"metrics.csv", "claims.csv", "thresholds.csv"} <= {path.name for path in made}
    for path in made:
        assert path.read_bytes() == (out / path.name).read_bytes(), path

    # And so does the notebook, of predictions.
    if example == "own_predictions":
        predictions = pd.read_csv(file)
        compared = persistcal.compare(predictions, min_contrast=min_contrast, n_replicates=200)
        checked = persistcal.threshold(predictions, precision=0.8, n_replicates=200)
        tables = compared.tables | checked.tables
        assert {f"{name}.csv" for name in tables} == {path.name for path in made}
        del tables["findings"]  # of thresholds for 90 %, which `compare` has in a notebook
        for name, table in tables.items():
            path = tmp_path / f"{name}.csv"
            artifacts.write_csv(table, path, getattr(artifacts, name.upper()))
            assert path.read_bytes() == (out / path.name).read_bytes(), name

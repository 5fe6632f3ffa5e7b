"""The Snakefile parses where Snakemake alone is installed, as `--sdm conda` expects."""

from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from programs import python
from workflow_runs import ROOT


def needed(name):
    """Names of the distribution `name` and of all that it needs, as installed here."""
    waiting, seen = [name], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        try:
            listed = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue
        seen.add(name)
        waiting += [r.name for r in listed if not r.marker or r.marker.evaluate({"extra": ""})]
    return seen


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder of packages: links to Snakemake and to what it needs."""
    site = tmp_path_factory.mktemp("site")
    for name in needed("snakemake"):
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(distribution.locate_file(top)))
    assert (site / "snakemake").exists() and not (site / "pandas").exists()
    return site


CONFIGS = [
    [],
    ["config/atlas.yaml"],
    ["config/atlas.yaml", "config/atlas_pretraining.yaml"],
    ["config/own_answers.yaml"],
    ["config/own_predictions.yaml"],
]


@pytest.mark.slow
@pytest.mark.parametrize("configs", CONFIGS, ids=lambda paths: "+".join(paths) or "paper")
def test_a_dry_run_needs_nothing_but_snakemake(alone, tmp_path, configs):
    for name in ("example_answers.csv", "example_predictions.csv"):
        (tmp_path / "config").mkdir(exist_ok=True)
        (tmp_path / "config" / name).symlink_to(ROOT / "config" / name)
    words = ["-S", "-m", "snakemake", "--dry-run", "--quiet", "rules", "--cores", "1"]
    words += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path), "all"]
    words += ["--configfile", *(str(ROOT / path) for path in configs)] if configs else []
    assert "total" in python(*words, PYTHONPATH=str(alone))

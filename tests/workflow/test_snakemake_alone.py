"""The Snakefile needs no package except Snakemake, as `--sdm conda` requires."""

import json
import re
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
def site(tmp_path_factory):
    """A folder of packages: links to Snakemake and its dependencies."""
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


# Runs of Snakemake, one after the other, forked from a Python that has imported it
RUNS = """
import json, os, sys
from snakemake.cli import get_argument_parser, main
get_argument_parser()  # finds the plugins
for words in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        main(words)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"failed: {words}")
"""


def test_dry_runs_need_no_package_but_snakemake(site, tmp_path):
    for name in ("example_answers.csv", "example_predictions.csv"):
        (tmp_path / "config").mkdir(exist_ok=True)
        (tmp_path / "config" / name).symlink_to(ROOT / "config" / name)
    words = ["--dry-run", "--quiet", "rules", "--cores", "1"]
    words += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path), "all"]
    overlays = [["--configfile", *(str(ROOT / p) for p in c)] if c else [] for c in CONFIGS]
    runs = json.dumps([[*words, *overlay] for overlay in overlays])
    output = python("-S", "-c", RUNS, runs, PYTHONPATH=str(site))
    # a dry run lists its jobs at the beginning and at the end
    assert len(re.findall(r"^total +\d+$", output, re.MULTILINE)) == 2 * len(CONFIGS)

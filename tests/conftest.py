"""What several test files share: one finished study, and the plan of the paper's."""

import shutil

import pytest
from workflow_runs import ATLAS, ROOT, snakemake


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder in which the small atlas study is complete; tests change copies of it."""
    folder = tmp_path_factory.mktemp("study")
    # As in a clone, where what the rules read is named relative to the working directory.
    shutil.copytree(ROOT / "resources", folder / "resources")
    snakemake(folder, "--cores", "2", configs=ATLAS)
    return folder


@pytest.fixture(scope="session")
def paper_dry_runs(tmp_path_factory):
    """What `snakemake --dry-run` says of the paper's study: the default target and `all`."""
    folder = tmp_path_factory.mktemp("paper_dry_runs")
    paper = [ROOT / "config" / "config.yaml"]
    return {
        name: snakemake(folder, "--dry-run", *target, configs=paper)
        for name, target in {"study": [], "all": ["all"]}.items()
    }

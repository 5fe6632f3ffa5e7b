"""What several test files share: one finished study, and the plan of the paper's."""

import shutil

import pytest
from workflow_runs import ATLAS, ROOT, snakemake

# Files that share a session's fixture, and so a worker of pytest-xdist.
SHARING = {
    "test_workflow": "study",
    "test_reruns": "study",
    "test_paper_jobs": "paper",
    "test_costs": "paper",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """A worker runs whole files, those that start workflows first: they take longest."""
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group(SHARING.get(name, name)))
        if item.path.parent.name == "workflow":
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


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

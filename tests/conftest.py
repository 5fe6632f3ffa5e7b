"""Fixtures of several test files: one finished study, and the plan of the paper's."""

import json
import shutil

import pytest
from filelock import FileLock
from soak_budget import COUNTS
from workflow_runs import ATLAS, ROOT, snakemake

collect_ignore = ["helpers/absent_packages"]  # for other Pythons, of which one begins with it
WHOLE_PAPER = ROOT / "config" / "whole_paper.yaml"
LONGEST = ["test_slurm.py", "test_paper_mini.py"]  # with --no-loadscope-reorder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Files that start workflows come first: they take longest, some as long as all others."""
    for item in items:
        if item.path.parent.name == "workflow" or "paper_dry_runs" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
    items.sort(
        key=lambda item: (
            item.path.name not in LONGEST,
            item.get_closest_marker("slow") is None,
        )
    )


def pytest_terminal_summary(terminalreporter):
    """Print the counts of `make soak`."""
    for what, n in COUNTS.items():
        terminalreporter.write_line(f"{what}: {n}")


def made_once(tmp_path_factory, worker_id, name, make):
    """Let the first worker of pytest-xdist make a folder; the others wait for it."""
    root = tmp_path_factory.getbasetemp()
    folder = (root if worker_id == "master" else root.parent) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            part = folder.with_name(f"{name}.part")
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder


@pytest.fixture(scope="session")
def study(tmp_path_factory, worker_id):
    """A folder in which the small atlas study is complete; tests change copies of it."""

    def make(folder):
        # As in a clone, where what the rules read is named relative to the working directory.
        shutil.copytree(ROOT / "resources", folder / "resources")
        snakemake(folder, "--cores", "2", ranks=2, configs=ATLAS)

    return made_once(tmp_path_factory, worker_id, "study", make)


@pytest.fixture(scope="session")
def paper_dry_runs(tmp_path_factory, worker_id):
    """Dry runs of the paper's study: a table, the default target, and `all` of the whole paper.

    The first two are planned as the README says, by the profile that is `slurm` in the root.
    """

    def make(folder):
        paper = [ROOT / "config" / "config.yaml"]
        plans = {
            "table": snakemake(
                folder,
                *("--dry-run", "results/tables/oracle_vs_methods.tex"),
                configs=paper,
                profile="slurm",
            ),
            "study": snakemake(folder, "--dry-run", configs=paper, profile="slurm"),
            "all": snakemake(folder, "--dry-run", "all", configs=[*paper, WHOLE_PAPER]),
        }
        (folder / "plans.json").write_text(json.dumps(plans))

    folder = made_once(tmp_path_factory, worker_id, "paper_dry_runs", make)
    return json.loads((folder / "plans.json").read_text())

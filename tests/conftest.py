"""Fixtures of several test files, the order of the tests, and the summary of a run."""

import gc
import json
import shutil
from collections import Counter

import hypothesis  # noqa: F401  # it looks for references, and what is frozen has none
import pytest
from changed_tests import OnlyAffected
from filelock import FileLock
from skips import false_reasons
from soak_budget import COUNTS
from workflow_runs import ATLAS, ROOT, snakemake

gc.disable()
collect_ignore = ["helpers/absent_packages"]  # the start of other Pythons
WHOLE_PAPER = ROOT / "config" / "whole_paper.yaml"
SMOKE = ROOT / "config" / "smoke.yaml"
# With --no-loadscope-reorder, workers take files in this order, the longest first.
LONGEST = ["slurm", "workflow", "paper_mini", "without_models", "under_pretence", "one_gpu"]
LONGEST += ["lab_run", "own_answers_run", "install", "runs", "gpu", "page_browser", "ranks"]


def pytest_addoption(parser):
    parser.addoption(
        "--changed",
        metavar="COMMIT",
        nargs="?",
        const="HEAD",
        help="only test files that import or name a file that differs from COMMIT (HEAD)",
    )


def pytest_configure(config):
    """Leave out the tests that a change cannot affect."""
    if since := config.getoption("--changed"):
        config.pluginmanager.register(OnlyAffected(since))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark and order tests: tests that start workflows take longest and run first."""
    for item in items:
        if item.path.parent.name == "workflow" or "paper_dry_runs" in item.fixturenames:
            item.add_marker(pytest.mark.slow)

    def order(item):
        name = item.path.stem.removeprefix("test_")
        place = LONGEST.index(name) if name in LONGEST else len(LONGEST)
        return place, item.get_closest_marker("slow") is None

    items.sort(key=order)


def pytest_collection_finish():
    """Begin to look for garbage, but not in what is imported to collect the tests: it stays."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """Print the time of each kind of tests, false reasons to skip, and the soak counts."""
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                is_slow = "slow" in report.keywords
                seconds["rehearsals (-m slow)" if is_slow else "other tests"] += report.duration
    for kind, n in seconds.items():
        terminalreporter.write_line(f"{kind}: {n:.0f} s of all workers together")
    for line in false_reasons(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(f"SKIPPED though this machine could run it: {line}")
    for label, n in COUNTS.items():
        terminalreporter.write_line(f"{label}: {n}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Let a run fail if it skipped a test that this machine could run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and session.exitstatus == pytest.ExitCode.OK:
        if false_reasons(reporter.stats.get("skipped", [])):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
    """A folder with the complete small atlas study; tests change copies of it."""

    def make(folder):
        # As in a clone, files of the project are named relative to the working directory.
        shutil.copytree(ROOT / "resources", folder / "resources")
        snakemake(folder, "--cores", "2", configs=ATLAS)

    return made_once(tmp_path_factory, worker_id, "study", make)


@pytest.fixture(scope="session")
def paper_dry_runs(tmp_path_factory, worker_id):
    """Dry runs of the paper: a table, the default target, a smoke run, and all of the paper.

    All but the last use the profile `slurm` by name, like the README.
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
            "smoke": snakemake(folder, "--dry-run", configs=[SMOKE], profile="slurm"),
            "all": snakemake(folder, "--dry-run", "all", configs=[*paper, WHOLE_PAPER]),
        }
        (folder / "plans.json").write_text(json.dumps(plans))

    folder = made_once(tmp_path_factory, worker_id, "paper_dry_runs", make)
    return json.loads((folder / "plans.json").read_text())

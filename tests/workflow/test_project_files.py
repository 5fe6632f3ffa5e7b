"""Files of other services and tools agree with the project."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import persistcal
from tools import envs

ROOT = Path(__file__).parents[2]


def test_hooks_before_a_commit_are_the_linters_of_make_check():
    makefile = (ROOT / "Makefile").read_text()
    recipes = dict(re.findall(r"^(\w+):.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE))
    assert " types lint\n" in recipes["check"]
    types = recipes["types"].replace("$(MYPY)", "$(RUN)/mypy")
    recipes_of_linters = types + recipes["lint"]
    linters = {line.removeprefix("\t@$(RUN)/") for line in recipes_of_linters.splitlines()}
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = {hook["entry"].removeprefix(".venv/bin/") for hook in local["hooks"]}
    by_file = {"ruff check .", "ruff format --check ."}
    assert by_file < linters
    assert entries == (linters - by_file) | {
        linter.removesuffix(".") + "--force-exclude" for linter in by_file
    }


def test_the_service_runs_what_must_pass_before_a_change_lands():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = [step.get("run") for step in jobs["tests"]["steps"]]
    assert ".ci/run" in commands and "sudo make test-packages" in commands
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert oldest.removeprefix(">=") in jobs["wheel"]["strategy"]["matrix"]["python"]


def test_version_and_date_are_the_same_in_all_files():
    version = persistcal.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    release = f"{version} ({citation['date-released']})"
    assert citation["version"] == version
    assert re.search(r"^## (.+)", changelog, flags=re.MULTILINE)[1] == release
    assert f'tag="v{version}"' in (ROOT / "docs/module.md").read_text()


def test_lowest_versions_are_those_that_the_library_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = {
        Requirement(line).name: Requirement(line).specifier for line in project["dependencies"]
    }
    pins = map(Requirement, envs.listed("lowest.txt"))
    lowest = {pin.name: next(iter(pin.specifier)).version for pin in pins}
    floors = {
        name: next(part.version for part in parts if part.operator == ">=")
        for name, parts in allowed.items()
    }
    assert {n: Version(v) for n, v in lowest.items()} == {
        n: Version(v) for n, v in floors.items()
    }
    assert not any(part.operator[0] == "<" for parts in allowed.values() for part in parts)


def test_the_catalogue_of_workflows_lists_it_with_standardised_usage():
    """The requirements of snakemake/snakemake-workflow-catalog, which runs two linters itself.

    `make check` runs both, snakefmt and `snakemake --lint`.
    """
    readme = (ROOT / "README.md").read_text().lower()
    assert "snakemake" in readme and "workflow" in readme
    assert (ROOT / "config/README.md").stat().st_size > 0
    [usage] = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text()).values()
    # No flag is mandatory: profiles/default sets the triggers of reruns.
    ways = {"conda": True, "apptainer": True, "apptainer+conda": False, "report": True}
    assert usage == {"software-stack-deployment": ways}
    assert (ROOT / "profiles/default/profile.yaml").exists()

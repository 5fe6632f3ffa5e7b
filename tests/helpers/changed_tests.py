"""The test files that a change can affect, by their imports."""

import functools
import subprocess
import tomllib
from pathlib import Path

from persistcal.store.code import imported_names

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = [ROOT / name for name in SETTINGS["tool"]["pytest"]["ini_options"]["pythonpath"]]
RUN_BY_SNAKEMAKE = ("Snakefile", "workflow/", "config/", "profiles/", "study/")


def changed_files(since):
    """Return the paths that differ from the commit `since`, untracked files included."""
    commands = (["diff", "--name-only", since], ["ls-files", "-o", "--exclude-standard"])
    outputs = [subprocess.check_output(["git", *c], cwd=ROOT, text=True) for c in commands]
    return "".join(outputs).splitlines()


@functools.cache
def _direct_imports(file):
    names = [name.split(".") for name in imported_names(file, ROOT)]
    stems = [folder.joinpath(*name) for folder in FOLDERS for name in names if name[0]]
    paths = {path for s in stems for path in (s.with_suffix(".py"), s / "__init__.py")}
    return {path for path in paths if path.exists()}


def is_affected(path, changed):
    """Return whether the test file imports or names a changed file, or runs workflows."""
    files, waiting = set(), {path}
    while waiting:
        files.add(file := waiting.pop())
        waiting |= _direct_imports(file) - files
    runs_workflows = ROOT / "tests/helpers/workflow_runs.py" in files
    names = [Path(name).name if Path(name).suffix else name for name in changed]
    return (
        not files.isdisjoint(ROOT / name for name in changed)
        or (runs_workflows and any(name.startswith(RUN_BY_SNAKEMAKE) for name in changed))
        or any(name in path.read_text(encoding="utf-8") for name in names)
    )

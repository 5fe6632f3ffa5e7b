"""The test files that a change can affect, by their imports."""

import ast
import functools
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = [ROOT / name for name in SETTINGS["tool"]["pytest"]["ini_options"]["pythonpath"]]
RUN_BY_SNAKEMAKE = ("Snakefile", "workflow/", "config/", "profiles/", "study/")


def changed_files(since):
    """Return the paths that differ from the commit `since`, untracked files included."""
    commands = (["diff", "--name-only", since], ["ls-files", "-o", "--exclude-standard"])
    outputs = [subprocess.check_output(["git", *c], cwd=ROOT, text=True) for c in commands]
    return [name for output in outputs for name in output.splitlines()]


@functools.cache
def _direct_imports(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    stems = [folder.joinpath(*name.split(".")) for folder in FOLDERS for name in names]
    paths = {path for s in stems for path in (s.with_suffix(".py"), s / "__init__.py")}
    return {path for path in paths if path.exists()}


def imported(path):
    """Return the project's files that a file imports, directly or indirectly, and itself."""
    files, waiting = set(), {path}
    while waiting:
        file = waiting.pop()
        files.add(file)
        waiting |= _direct_imports(file) - files
    return files


def is_affected(path, changed):
    """Return whether the test file imports or names a changed file, or runs workflows."""
    files = imported(path)
    if files & {ROOT / name for name in changed}:
        return True
    runs_workflows = ROOT / "tests/helpers/workflow_runs.py" in files
    if runs_workflows and any(name.startswith(RUN_BY_SNAKEMAKE) for name in changed):
        return True
    text = path.read_text(encoding="utf-8")
    named = (Path(name).name if Path(name).suffix else name for name in changed)
    return any(name in text for name in named)

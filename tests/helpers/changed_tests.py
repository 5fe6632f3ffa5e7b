"""The test files that a change can affect, by their imports."""

import functools
import subprocess
import sys
from pathlib import Path

from persistcal.store.code import imported_names

ROOT = Path(__file__).parents[2]
RUN_BY_SNAKEMAKE = ("Snakefile", "workflow/", "config/", "profiles/", "study/")


def changed_files(since):
    """Return the paths that differ from the commit `since`, untracked files included."""
    commands = (["diff", "--name-only", since], ["ls-files", "-o", "--exclude-standard"])
    outputs = [subprocess.check_output(["git", *c], cwd=ROOT, text=True) for c in commands]
    return "".join(outputs).splitlines()


@functools.cache
def _direct_imports(file):
    folders = [p for p in sys.path if ROOT in Path(p, "*").parents and "site-packages" not in p]
    names = [name.split(".") for name in imported_names(file, ROOT) if name]
    stems = [Path(folder, *name) for folder in folders for name in names]
    return {p for s in stems for p in (s.with_suffix(".py"), s / "__init__.py") if p.exists()}


def is_affected(path, changed):
    """Return whether the test file imports or names a changed file, or runs workflows."""
    files, waiting = set(), {path}
    while waiting:
        files.add(file := waiting.pop())
        waiting |= _direct_imports(file) - files
    runs_workflows = ROOT / "tests/helpers/workflow_runs.py" in files
    names = [Path(name).name if Path(name).suffix else name for name in changed]
    text = path.read_text(encoding="utf-8")
    return (
        any(ROOT / name in files for name in changed)
        or (runs_workflows and any(name.startswith(RUN_BY_SNAKEMAKE) for name in changed))
        or any(name in text for name in names)
    )

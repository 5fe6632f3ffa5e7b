"""The test files that a change can affect: they import or name it, or run its workflow."""

import ast
import fnmatch
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from persistcal.store.code import imported_names

ROOT = Path(__file__).parents[2]
RUN_BY_SNAKEMAKE = ("Snakefile", "workflow/", "reproduce/rules/", "reproduce/scripts/")
RUN_BY_SNAKEMAKE += ("config/", "profiles/", "study/")


def _git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def changed_files(since):
    """Return the paths that differ from the commit `since`, untracked files included."""
    untracked = _git("ls-files", "-o", "--exclude-standard").splitlines()
    return [*_git("diff", "--name-only", since).splitlines(), *untracked]


def _definitions(text):
    """Return the code of a module without imports, docstrings and comments."""
    texts, imports = ast.Expr, (ast.Import, ast.ImportFrom)
    kept = [n for n in ast.parse(text).body if not isinstance(n, (*imports, texts))]
    return [ast.dump(node) for node in kept]


def changed_modules(since, changed):
    """Return the changed modules of which more than imports differs from the commit `since`."""
    modules = [name for name in changed if name.endswith(".py") and (ROOT / name).exists()]
    return [
        name
        for name in modules
        if _definitions((ROOT / name).read_text(encoding="utf-8"))
        != _definitions(_git("show", f"{since}:{name}"))
    ]


@functools.cache
def _modules():
    """Return the modules of the project by the names under which tests import them."""
    folders = [Path(p) for p in sys.path if ROOT in Path(p, "*").parents and ".venv" not in p]
    files = [ROOT / name for name in _git("ls-files", "-co", "--exclude-standard").splitlines()]
    modules = [file for file in files if file.suffix == ".py" and file.exists()]
    names = {}
    for folder in folders:
        for module in (file for file in modules if folder in file.parents):
            dotted = ".".join(module.relative_to(folder).with_suffix("").parts)
            names[dotted.removesuffix(".__init__")] = module
    return names


@functools.cache
def _direct_imports(file):
    return {_modules()[name] for name in imported_names(file, ROOT) if name in _modules()}


@functools.cache
def _named_paths(file):
    """Return the paths and patterns of paths in a file, `ROOT / "docs"` written as docs."""
    text = re.sub(r"""f?["')]*\s*/\s*f?["']""", "/", file.read_text(encoding="utf-8"))
    text = re.sub(r"""\.rglob\(["']""", " **/", text)
    return {word.removeprefix("ROOT/") for word in re.findall(r"[\w./*-]+", text)}


def _matches(name, pattern):
    is_deep = "**/" in pattern or pattern.count("/") == name.count("/")
    return is_deep and fnmatch.fnmatch(name, pattern.replace("**/", "*"))


def is_affected(path, changed, modules):
    """Return whether a test file is affected by `changed` files.

    It is if the test or a helper that it imports is changed, names a changed file by its
    whole path, or imports one of the changed `modules` or an importer of one. Tests that run
    workflows are affected by what Snakemake runs.
    """
    files, waiting = set(), {path}
    while waiting:
        files.add(file := waiting.pop())
        waiting |= {p for p in _direct_imports(file) if ROOT / "tests" in p.parents} - files
    importers = set().union(*map(_direct_imports, files))
    imported = importers.union(*map(_direct_imports, importers))
    named = set().union(*map(_named_paths, files))
    patterns = [word for word in named if "*." in word]
    runs_workflows = ROOT / "tests/helpers/workflow_runs.py" in files
    return any(ROOT / name in imported for name in modules) or any(
        ROOT / name in files
        or name in named
        or (runs_workflows and name.startswith(RUN_BY_SNAKEMAKE) and not name.endswith(".md"))
        or any(_matches(name, pattern) for pattern in patterns)
        for name in changed
    )


class OnlyAffected:
    """The plugin of `--changed COMMIT`: test files that are not affected are not imported."""

    def __init__(self, since):
        self.changed = changed_files(since)
        self.modules = changed_modules(since, self.changed)

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path, parent):
        """Replace the collectors of a file that is not affected."""
        collectors = yield
        if collectors and not is_affected(file_path, self.changed, self.modules):
            return [NotAffected.from_parent(parent, path=file_path)]
        return collectors

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        """Report the functions of these files as deselected."""
        config.hook.pytest_deselected(items=[i for i in items if isinstance(i, DroppedTest)])
        items[:] = [item for item in items if not isinstance(item, DroppedTest)]


class NotAffected(pytest.File):
    """A test file that is not imported; its functions are only counted."""

    def collect(self):
        """Return an item per test function."""
        for name in re.findall(r"^def (test_\w+)", self.path.read_text("utf-8"), re.MULTILINE):
            yield DroppedTest.from_parent(self, name=name)


class DroppedTest(pytest.Item):
    """A test that `--changed` leaves out."""

    def runtest(self):
        """Fail: a test that is left out never runs."""
        raise AssertionError(f"{self.name} was left out by --changed")

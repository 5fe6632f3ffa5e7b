"""Compute digests of the code that makes a result."""

import ast
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from persistcal.store.files import digest

PACKAGES = ("persistcal", "atlas", "reproduce")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all nested statements; expressions contain neither imports nor docstrings."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for branch in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _statements(branch.body)


def _imported(statements: list[ast.stmt], package: str) -> Iterator[str]:
    """Yield the dotted names that the statements of a file of `package` can import."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else []), *filter(None, [node.module])]
            yield ".".join(parts)
            # A name that is imported from a package can be a module or defined in `__init__`.
            yield from (".".join([*parts, alias.name]) for alias in node.names)


@functools.cache
def _files_of(name: str, root: Path) -> set[Path]:
    """Return the files that run when the module `name` is imported, its packages included.

    The package's top `__init__` only contains names for notebooks. It counts, with all of
    `api`, only if a user's file imports the package itself and so can use any of these names.
    """
    parts = name.split(".")
    names = root / "persistcal" / "__init__.py"
    if parts[0] not in PACKAGES:
        return set()
    if name == "persistcal":
        return {names, *(root / "persistcal" / "api").glob("*.py")}
    paths = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    files = {file for path in paths for file in (path / "__init__.py", path.with_suffix(".py"))}
    return {file for file in files - {names} if file.exists()}


@functools.cache
def _read(path: Path, root: Path) -> tuple[str, list[str]]:
    """Return the digest of a file's code, and the dotted names that it can import.

    To parse all files takes seconds of each start of Snakemake. The user's cache therefore
    keeps both, keyed by the file's content, its package, this module and the Python version.
    """
    inside = any(path.is_relative_to(root / package) for package in PACKAGES)
    package = ".".join(path.parent.relative_to(root).parts) if inside else ""
    content = path.read_bytes()
    key = digest([sys.version, _this_module(), package, "\0", content])
    entry = _cache_folder() / key
    with suppress(OSError, ValueError):
        checksum, *lines = entry.read_text(encoding="utf-8").splitlines()
        if checksum == digest(lines):
            return lines[0], lines[1:]
    tree = ast.parse(content, filename=str(path))
    statements = list(_statements(tree.body))
    imports = sorted(set(_imported(statements, package)))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in (tree, *statements):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    lines = [digest([ast.dump(tree)]), *imports]
    with suppress(OSError):  # a cache that cannot be written only costs time
        entry.parent.mkdir(parents=True, exist_ok=True)
        part = entry.with_name(f".{key}.{os.getpid()}")
        part.write_text("\n".join([digest(lines), *lines]), encoding="utf-8")
        part.replace(entry)
    return lines[0], imports


def _cache_folder() -> Path:
    try:
        home = Path.home()
    except RuntimeError:  # the user has no home: no entry can be read or written
        home = Path(os.devnull)
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "persistcal", "code")


@functools.cache
def _this_module() -> str:
    return digest([Path(__file__).read_bytes()])


def imported_names(path: Path, root: Path) -> list[str]:
    """Return the dotted names that a file can import."""
    return _read(path, root)[1]


def imported_files(script: Path, root: Path) -> set[Path]:
    """Return the files of our packages that `script` imports, directly or indirectly."""
    waiting, seen = [script], {script}
    while waiting:
        names = imported_names(waiting.pop(), root)
        further = set().union(*(_files_of(name, root) for name in names)) - seen
        seen |= further
        waiting += further
    return seen - {script}


@functools.cache
def code_digest(script: Path, root: Path) -> str:
    """Return the digest of a script and of all modules in `root` that it imports.

    Comments, docstrings, layout and file times do not change the digest.
    """
    lines = [f"{script.name} {_read(script, root)[0]}\n"]
    for path in sorted(imported_files(script, root)):
        lines.append(f"{path.relative_to(root)} {_read(path, root)[0]}\n")
    return digest(lines)[:16]


def function_of(file: str) -> Any:  # noqa: ANN401
    """Run a Python file, and return its function of the same name, or None."""
    name = Path(file).stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader, file
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name, None)


def texts_digest(folder: Path) -> str:
    """Return the digest of a folder's text files, which a digest of code does not cover."""
    files = sorted(folder.iterdir())
    return digest(f"{f.name}\0{f.read_text(encoding='utf-8')}\0" for f in files)[:16]


def commit() -> str:
    """Return the commit of the running code, marked if edited; empty if unknown."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return described.stdout.strip()

"""Tie a result to the code that made it."""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "persistcal"


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those within them; expressions hold neither imports nor docs."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for branch in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _statements(branch.body)


def _drop_docstrings(tree: ast.Module, statements: list[ast.stmt]) -> None:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in (tree, *statements):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]


def _imported(statements: list[ast.stmt], package: str) -> Iterator[str]:
    """Yield the dotted names that the statements of a file of `package` may import."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else []), *filter(None, [node.module])]
            yield ".".join(parts)
            # What is imported from a package may be a module, or a name in its `__init__`.
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def _files_of(name: str, root: Path) -> Iterator[Path]:
    """Yield the files that run when the module `name` is imported: its packages' too."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return
    for depth in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:depth])
        yield from (p for p in (path / "__init__.py", path.with_suffix(".py")) if p.exists())


class _Code(NamedTuple):
    """Digest of what a file says, and the files of the package that run when it does."""

    meaning: str
    imports: frozenset[Path]


@functools.cache
def _read(path: Path, root: Path) -> _Code:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    inside = path.is_relative_to(root / PACKAGE)
    package = ".".join(path.parent.relative_to(root).parts) if inside else ""
    statements = list(_statements(tree.body))
    imports = frozenset(
        file for name in set(_imported(statements, package)) for file in _files_of(name, root)
    )
    _drop_docstrings(tree, statements)
    return _Code(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports)


def imported_files(script: Path, root: Path) -> set[Path]:
    """Return the files of the package that run when `script` and its functions do."""
    waiting, seen = [script], {script}
    while waiting:
        further = _read(waiting.pop(), root).imports - seen
        seen |= further
        waiting += further
    return seen - {script}


@functools.cache
def code_digest(script: Path, root: Path) -> str:
    """Digest of a script and of all modules of `persistcal` that it imports.

    What the code says counts, not how: comments, docstrings, layout and file
    times leave the digest as it is. Imports are followed through modules and
    packages, absolute and relative ones, and into functions.

    Parameters
    ----------
    script : Path
        A Python file.
    root : Path
        The folder that holds the `persistcal` package.

    Returns
    -------
    str
        16 hexadecimal digits.

    Raises
    ------
    FileNotFoundError
        When `script` does not exist.
    """
    digest = hashlib.sha256(f"{script.name} {_read(script, root).meaning}\n".encode())
    for path in sorted(imported_files(script, root)):
        meaning = _read(path, root).meaning
        digest.update(f"{path.relative_to(root)} {meaning}\n".encode())
    return digest.hexdigest()[:16]

"""Figures and tables of a study, registered by the functions that make them.

`@figure` or `@table` above a function is all that a new one needs. The function receives the
rows of an artifact, and by keyword the settings of the study that its parameters name
(`study/views.py` lists them). The Snakefile reads the decorators without importing the
functions, so their arguments are literals and this module imports no other package.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

Function = TypeVar("Function", bound=Callable[..., Any])

Target = Literal["study", "all"]

FIGURES: dict[str, Callable[..., Any]] = {}
TABLES: dict[str, Callable[..., Any]] = {}


class View(NamedTuple):
    """A figure or table, as its decorator describes it."""

    kind: str
    module: str
    settings: tuple[str, ...]  # the keyword parameters of the function
    name: str
    artifact: str
    caption: str
    label: str
    files: str
    target: str


def figure(
    name: str,
    *,
    artifact: str,
    caption: str,
    label: str,
    files: str = "",
    target: Target = "study",
) -> Callable[[Function], Function]:
    """Register a function that draws a figure.

    The file is called `name`, which makes a figure of each dataset if it contains `{dataset}`.
    The function reads the table `artifact` of `persistcal.store.artifacts`, from the files with
    the key `files` (or else `artifact`) in `workflow/rules/report.smk`; a study without these
    files has no such figure. `caption` and `label` are its text and its short name in
    Snakemake's report, with `{dataset}` and other settings in braces. `target` is the smallest
    target that makes it.
    """
    return _register(FIGURES, name)


def table(
    name: str, *, artifact: str, caption: str, files: str = "", target: Target = "study"
) -> Callable[[Function], Function]:
    """Register a function that returns a table as LaTeX and rows; see `figure`."""
    return _register(TABLES, name)


def _register(
    registry: dict[str, Callable[..., Any]], name: str
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        registry[name] = function
        return function

    return register


_DECORATORS: dict[str, Callable[..., Any]] = {"figure": figure, "table": table}


def declared_views(folder: Path) -> Iterator[View]:
    """Yield the figures and tables of the modules of a folder, in the order of the files."""
    for path in sorted(folder.glob("*.py")):
        functions = ast.parse(path.read_text(encoding="utf-8")).body
        for node in (node for node in functions if isinstance(node, ast.FunctionDef)):
            for mark in (mark for mark in node.decorator_list if isinstance(mark, ast.Call)):
                kind = ast.unparse(mark.func)
                if kind in _DECORATORS:
                    settings = tuple(argument.arg for argument in node.args.kwonlyargs)
                    try:
                        described = _described(kind, mark)
                    except (TypeError, ValueError) as error:
                        raise ValueError(
                            f"{path}: the decorator of {node.name} cannot be read ({error}); "
                            "write its arguments as literals, as `figure` describes them."
                        ) from error
                    yield View(kind, path.stem, settings, **described)


def _described(kind: str, mark: ast.Call) -> dict[str, str]:
    """Return the arguments of a decorator, with the defaults."""
    positional = [ast.literal_eval(value) for value in mark.args]
    named = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in mark.keywords}
    bound = inspect.signature(_DECORATORS[kind]).bind(*positional, **named)
    bound.apply_defaults()
    described = {"label": "", **bound.arguments}
    if described["target"] not in get_args(Target):
        raise ValueError(f"target is {described['target']!r} and not 'study' or 'all'")
    return {**described, "files": described["files"] or described["artifact"]}

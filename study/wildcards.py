"""How rules call typed functions: parameters receive the wildcards of the same names."""

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from snakemake.io import expand

Function = Callable[..., Any]


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly `names`."""
    return "|".join(map(re.escape, names)) or "(?!)"


def settings_of_job(function: Function) -> Function:
    """Call `function` for each job; parameters receive the wildcards of the same names."""
    names = list(inspect.signature(function).parameters)

    def call(wildcards: Any) -> Any:  # noqa: ANN401
        return function(**{name: wildcards[name] for name in names if name in wildcards.keys()})

    return call


def files_of_job(function: Function, pattern: str = "", **fixed: str | list[str]) -> Function:
    """Return the files that `function` returns for a job, called like `settings_of_job`.

    With a `pattern` it returns checkpoints or named tuples, and the pattern is filled for each.
    `fixed` contains further wildcards of the pattern, such as the split.
    """
    returned = settings_of_job(function)

    def paths(wildcards: Any) -> list[str]:  # noqa: ANN401
        rows = [
            row._asdict() if hasattr(row, "_asdict") else {"checkpoint": row}
            for row in returned(wildcards)
        ]
        return [p for row in rows for p in expand(pattern, **{**wildcards, **fixed, **row})]

    return paths if pattern else returned


def files_of_rows(pattern: str, rows: Iterable[NamedTuple]) -> list[str]:
    """Fill `pattern` for each row, a named tuple of the wildcards."""
    return [pattern.format(**row._asdict()) for row in rows]


def without_rerun(value: Any) -> Function:  # noqa: ANN401
    """Pass a value, or a function as `settings_of_job`, as a parameter that reruns nothing.

    Snakemake does not compare parameters that are functions of `input`.
    """
    call = settings_of_job(value) if callable(value) else None

    def derive(wildcards: Any, input: Any) -> Any:  # noqa: ANN401
        return call(wildcards) if call else value

    return derive

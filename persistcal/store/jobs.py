"""Run the function of a script as a job: inputs read, result written whole or not at all.

A script is one typed function. Its positional parameters are the rule's inputs of the same
names, its keyword-only ones the rule's params and wildcards, and what it returns are the
outputs, in their order. How each is read and written stands in the annotations.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args, get_type_hints

import pandas as pd

from persistcal.store import artifacts
from persistcal.store.files import write_whole
from persistcal.store.logs import log_to

Files = str | list[str]


class RuleJob(Protocol):
    """What Snakemake gives to a script."""

    input: Any
    output: Any
    params: Any
    wildcards: Any
    log: Sequence[str]
    threads: int


@dataclass(frozen=True)
class Job:
    """A job's files and settings; a function that asks for one is given it.

    Attributes
    ----------
    inputs, outputs : dict
        A file or a list of files by name.
    settings : dict
        Params and wildcards of the rule.
    threads : int
    """

    inputs: dict[str, Files]
    outputs: dict[str, Files]
    settings: dict[str, Any]
    threads: int

    @classmethod
    def of(cls, rule_job: RuleJob) -> "Job":
        """Return what `rule_job` says, as plain values."""
        settings = {**dict(rule_job.wildcards.items()), **dict(rule_job.params.items())}
        return cls(_files(rule_job.input), _files(rule_job.output), settings, rule_job.threads)


def _files(named: Any) -> dict[str, Files]:  # noqa: ANN401
    return {
        name: str(files) if isinstance(files, str) else [str(file) for file in files]
        for name, files in named.items()
    }


def run(function: Callable[..., Any], rule_job: RuleJob) -> None:
    """Call `function` as the job that Snakemake describes, logging to the rule's log."""
    log_to(rule_job.log[0])
    execute(function, Job.of(rule_job))


def execute(function: Callable[..., Any], job: Job) -> None:
    """Call `function` with the inputs and settings of `job`, and write what it returns.

    Raises
    ------
    TypeError
        When the function and its rule do not fit together.
    """
    hints = get_type_hints(function, include_extras=True)
    returned = hints.pop("return")
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        setting = parameter.kind is parameter.KEYWORD_ONLY
        there: Mapping[str, Any] = job.settings if setting else job.inputs
        if hints[name] is Job:
            arguments[name] = job
        elif name == "threads":
            arguments[name] = job.threads
        elif name in there:
            arguments[name] = there[name] if setting else _read(hints[name], there[name])
        elif parameter.default is parameter.empty:
            kind = "params or wildcards" if setting else "inputs"
            raise TypeError(
                f"{function.__name__} needs {name!r}, which its rule's {kind} lack."
            )
    result = function(**arguments)
    several = getattr(returned, "__origin__", None) is tuple
    kinds = get_args(returned) if several else [returned] * len(job.outputs)
    results = result if several else [result] * len(job.outputs)
    for kind, value, (name, files) in zip(kinds, results, job.outputs.items(), strict=True):
        if isinstance(files, str):
            _write(kind, value, files, job.settings)
            continue
        for file, about in zip(files, job.settings[f"{name}_of"], strict=True):
            here = (value[list(about)] == pd.Series(about)).all(axis=1)
            _write(kind, value[here], file, about)


def _read(kind: Any, files: Files) -> Any:  # noqa: ANN401
    """Return what is in `files`, as the annotation `kind` says."""
    for table in getattr(kind, "__metadata__", ()):
        return artifacts.read_about(files, table)
    if not isinstance(files, str):
        [kind] = get_args(kind)
        return [_read(kind, file) for file in files]
    return kind.read(files) if hasattr(kind, "read") else kind(files)


def _write(kind: Any, value: Any, file: str, about: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Write a result to its file, as the annotation `kind` says."""
    for stored in getattr(kind, "__metadata__", ()):
        stored.write(value, file, about)
        return
    value.write(file) if hasattr(kind, "write") else write_whole(file, value)

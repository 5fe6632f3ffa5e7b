"""Run the function of a script as a job: inputs read, result written whole or not at all.

A script is one typed function. Its positional parameters are the rule's inputs of the same
names, its keyword-only ones the rule's params and wildcards, and what it returns are the
outputs, in their order. How each is read and written stands in the annotations.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from inspect import Parameter, signature
from types import NoneType, TracebackType
from typing import Any, Protocol, Self, get_args, get_origin, get_type_hints

import pandas as pd
from tqdm import tqdm

from persistcal.store import artifacts
from persistcal.store.files import FilePath, files_below, folder_beside, inside, write_whole

log = logging.getLogger(__name__)  # of all scripts: each runs in a process of its own

Files = str | list[str]


class RuleJob(Protocol):
    """The object that Snakemake gives to a script."""

    input: Any
    output: Any
    params: Any
    wildcards: Any
    resources: Any
    config: Mapping[str, Any]
    log: Sequence[str]
    threads: int


@dataclass(frozen=True)
class Job:
    """A job's files and settings; a function that asks for one is given it."""

    inputs: dict[str, Files]
    outputs: dict[str, Files]  # a job without any writes nothing
    settings: dict[str, Any]  # params and wildcards of the rule
    threads: int
    placed: bool = False  # whether the paths of tables name what their rows are about

    @classmethod
    def of(cls, rule_job: RuleJob) -> "Job":
        """Return the files and settings of Snakemake's object as plain values."""
        settings = {**dict(rule_job.wildcards.items()), **dict(rule_job.params.items())}
        files = _files(rule_job.input), _files(rule_job.output)
        return cls(*files, settings, rule_job.threads, placed=True)


def _files(named: Any) -> dict[str, Files]:  # noqa: ANN401
    return {
        name: str(files) if isinstance(files, str) else [str(file) for file in files]
        for name, files in named.items()
    }


class Outputs:
    """Writes the tables of a job one by one, where all together would take too much memory."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @classmethod
    def of_job(cls, job: Job) -> AbstractContextManager[Self]:
        """Return the outputs of `job`; a function that is given them returns nothing."""
        return nullcontext(cls(job))

    def write(
        self, table: artifacts.Table, frame: pd.DataFrame, about: Mapping[str, str]
    ) -> None:
        """Write `frame` to the output named like `table`, of several to what is `about` it."""
        files = self._job.outputs[table.name]
        if not isinstance(files, str):
            files = files[self._job.settings[f"{table.name}_of"].index(about)]
        table.write(frame, files, about)

    def folder(self) -> AbstractContextManager[str]:
        """Return a folder beside the last output, which is removed at the end."""
        *_, last = self._job.outputs.values()
        return folder_beside(paths(last)[-1])


def paths(files: Files) -> list[str]:
    """Return the paths of one file or of several."""
    return [files] if isinstance(files, str) else files


def run(function: Callable[..., Any], rule_job: RuleJob) -> None:
    """Call `function` as the job that Snakemake describes, logging to the rule's log."""
    log_to(rule_job.log[0])
    execute(function, Job.of(rule_job), rule_job.config)


def execute(
    function: Callable[..., Any], job: Job, config: Mapping[str, Any] | None = None
) -> None:
    """Call `function` with the inputs and settings of `job`, and write what it returns.

    torch, where the script imports it, computes with the job's threads, so that jobs side by
    side do not fight for cores. A parameter whose class has `of_job`, such as `Progress`, is
    a context that begins before the call and ends when the outputs are written. One whose
    class is a dataclass gets each of its fields from the input of that name. One that is named
    `config` gets the study's config, only to be shown: a change of it makes no job run again.
    """
    if torch := sys.modules.get("torch"):  # numeric scripts never import it
        torch.set_num_threads(job.threads)
    hints = get_type_hints(function, include_extras=True)
    parameters = signature(function).parameters
    named = {  # an input that is not there is [] to Snakemake
        name: files
        for name, files in job.inputs.items()
        if name in parameters and (files or parameters[name].default is Parameter.empty)
    }
    with ExitStack() as contexts:
        arguments: dict[str, Any] = {}
        for name, parameter in parameters.items():
            kind = _present(hints[name])
            if kind is Job:
                arguments[name] = job
            elif hasattr(kind, "of_job"):
                context = kind.of_job(replace(job, inputs=named))
                arguments[name] = contexts.enter_context(context)
            elif name == "threads":
                arguments[name] = job.threads
            elif name == "config":
                arguments[name] = config
            elif parameter.kind is Parameter.KEYWORD_ONLY and name in job.settings:
                arguments[name] = _setting(kind, job.settings[name])
            elif parameter.kind is not Parameter.KEYWORD_ONLY and name in named:
                arguments[name] = _read(kind, named[name], placed=job.placed)
            elif parameter.kind is not Parameter.KEYWORD_ONLY and _is_record(kind):
                arguments[name] = _read_each(kind, job.inputs, placed=job.placed)
            elif parameter.default is Parameter.empty:
                keyword = parameter.kind is Parameter.KEYWORD_ONLY
                lacking = "params or wildcards" if keyword else "inputs"
                raise TypeError(
                    f"{function.__name__} needs {name!r}, which its rule's {lacking} lack."
                )
        _write_all(hints["return"], function(**arguments), job)


def _present(kind: Any) -> Any:  # noqa: ANN401
    """Return the annotation of a value that is there, of one that may be None."""
    kinds = [one for one in get_args(kind) if one is not NoneType]
    return kinds[0] if NoneType in get_args(kind) and len(kinds) == 1 else kind


def _setting(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Return a setting; a dictionary becomes the record that the annotation names."""
    if not isinstance(value, Mapping) or not (is_dataclass(kind) or hasattr(kind, "_fields")):
        return value
    hints = get_type_hints(kind)
    return kind(**{name: _setting(_present(hints[name]), part) for name, part in value.items()})


def _read(kind: Any, files: Files, *, placed: bool) -> Any:  # noqa: ANN401
    """Return the content of `files`, as the annotation `kind` says."""
    for table in getattr(kind, "__metadata__", ()):
        return artifacts.read_about(files, table, placed=placed)
    if not isinstance(files, str):
        [kind] = get_args(kind)
        return [_read(kind, file, placed=placed) for file in files]
    return kind.read(files) if hasattr(kind, "read") else kind(files)


def _read_each(kind: Any, inputs: Mapping[str, Files], *, placed: bool) -> Any:  # noqa: ANN401
    """Return a record whose fields are the inputs of the same names."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    if lacking := [name for name in names if name not in inputs]:
        raise TypeError(f"{kind.__name__} needs {lacking[0]!r}, which its rule's inputs lack.")
    read = {name: _read(hints[name], inputs[name], placed=placed) for name in names}
    return kind(**read)


def _is_record(kind: Any) -> bool:  # noqa: ANN401
    """Return whether a class has a field for each of several inputs, and is no file itself."""
    return is_dataclass(kind) and not hasattr(kind, "read")


def _write_all(returned: Any, result: Any, job: Job) -> None:  # noqa: ANN401
    """Write what a function annotated to return `returned` has returned to the outputs."""
    if returned is NoneType or not job.outputs:
        return
    several = get_origin(returned) is tuple
    kinds = get_args(returned) if several else [returned] * len(job.outputs)
    results: Iterable[Any] = result if several else [result] * len(job.outputs)
    for kind, value, (name, files) in zip(kinds, results, job.outputs.items(), strict=True):
        if isinstance(files, str):
            _write(kind, value, files, job.settings)
        elif isinstance(value, pd.DataFrame):
            for file, about in zip(files, job.settings[f"{name}_of"], strict=True):
                here = (value[list(about)] == pd.Series(about)).all(axis=1)
                _write(kind, value[here], file, {**job.settings, **about})
        else:
            [each] = get_args(kind)
            for file, content in zip(files, value, strict=True):
                _write(each, content, file, job.settings)


def _write(kind: Any, value: Any, file: str, about: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Write a result to its file, as the annotation `kind` says."""
    for table in getattr(kind, "__metadata__", ()):
        table.write(value, file, about)
        return
    value.write(file) if hasattr(kind, "write") else write_whole(file, value)


UNCAUGHT = "uncaught"


def log_to(path: FilePath) -> None:
    """Log to the file `path` and to standard error, there with the name of the job.

    Of an uncaught exception the file gets the traceback, and standard error a line. What a
    GPU means by its errors is said in a sentence.
    """
    write_whole(path, "")  # makes its folder, too
    terminal = logging.StreamHandler()
    job = job_of(str(path)).replace("%", "%%")
    line = f"%(asctime)s {job} %(levelname)s %(message)s"
    terminal.setFormatter(logging.Formatter(line, "%H:%M:%S"))
    terminal.addFilter(lambda entry: entry.name != UNCAUGHT)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        handlers=[logging.FileHandler(path, mode="w"), terminal],
        force=True,
    )
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # names every glyph of a figure

    def record(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        message = explain(error)
        logging.getLogger(UNCAUGHT).critical("%s", message, exc_info=(kind, error, trace))
        print(f"{kind.__name__}: {message} (traceback in {path})", file=sys.stderr)

    sys.excepthook = record


def job_of(path: str) -> str:
    """Return the name of a job: where its log lies among those of the study.

    >>> job_of("results/logs/score_answers/atlas/p40/own.log"), job_of("a/rule.log")
    ('score_answers/atlas/p40/own', 'rule')
    """
    parts = path.removesuffix(".log").split("/")
    return "/".join(parts[parts.index("logs") + 1 :]) if "logs" in parts else parts[-1]


def read_benchmarks(logs: FilePath) -> list[tuple[str, pd.DataFrame]]:
    """Return the benchmarks in a folder of logs, each with the rule of its job."""
    return [
        (name.split("/")[0].removesuffix(".tsv"), pd.read_csv(inside(logs, name), sep="\t"))
        for name in files_below(logs, "*.tsv")
    ]


FULL = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "MPS backend out of memory",
)


def is_full(error: BaseException) -> bool:
    """Return whether an error of any library means that a GPU's memory is full."""
    if not isinstance(error, RuntimeError):
        return False
    return type(error).__name__ == "OutOfMemoryError" or any(s in str(error) for s in FULL)


def explain(error: BaseException) -> str:
    """Return the message of an error; for a GPU's, a sentence with its cause and remedy."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if is_full(error):
        return (
            "The GPU's memory holds the model, but not what is computed beside it even for the "
            "smallest batch; use a larger GPU, or several that share the model, or a smaller "
            f"batch_size ({lines[0]})."
        )
    # DistBackendError and its like; NCCL's own lines say more than the first one.
    if isinstance(error, RuntimeError) and "NCCL" in str(error):
        return (
            "The processes of this training do not reach each other over NCCL; each needs a "
            "GPU of its own and a network to the others, and NCCL_DEBUG=INFO says more "
            f"({'; '.join(dict.fromkeys([lines[0], lines[-1]]))})."
        )
    return str(error)


SECONDS = 10.0  # between two lines, and before the first

LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %),{rate_noinv_fmt}, {remaining} left"


class Pace(tqdm):
    """A bar of tqdm that is written as whole lines.

    A bar that draws over itself is hidden by those of other jobs on the same terminal,
    and in the files that a cluster keeps it is one line without end.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        every = {"mininterval": SECONDS, "maxinterval": SECONDS, "delay": SECONDS}
        super().__init__(*args, **kwargs, **every, bar_format=LINE, gui=True)

    def display(self, *_: object, **__: object) -> None:
        """Log where the job is."""
        log.info("%s", str(self))

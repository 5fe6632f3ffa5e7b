"""Run the function of a script as a job: read inputs, call it and write its outputs.

A script is one typed function. Positional parameters are the rule's inputs of the same names.
Keyword-only parameters are the rule's params and wildcards. The return values are the outputs,
in order. Annotations determine how inputs are read and outputs are written.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd

from persistcal.store import artifacts, provenance
from persistcal.store.code import function_of
from persistcal.store.files import FilePath, digest, write_whole
from persistcal.store.tables import PARAMETERS

log = logging.getLogger(__name__)  # shared by all scripts: each runs in a separate process
UNCAUGHT = "uncaught"  # the logger of exceptions
CODE = ("code", "further_code")  # settings with digests of code

# Messages of GPUs whose memory is full
FULL = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "MPS backend out of memory",
)

Files = str | list[str]


@dataclass(frozen=True)
class Job:
    """Files and settings of a job; a function can have a parameter of this type."""

    inputs: dict[str, Files]
    outputs: dict[str, Files]  # if empty, the job writes nothing
    settings: dict[str, Any]  # params and wildcards of the rule
    threads: int
    placed: bool = False  # whether paths name the model, checkpoint, … of a table's rows

    @classmethod
    def from_snakemake(cls, rule_job: Any) -> "Job":  # noqa: ANN401
        """Return the job that Snakemake's object describes, as plain values."""
        settings = {**dict(rule_job.wildcards.items()), **dict(rule_job.params.items())}
        files = _files(rule_job.input), _files(rule_job.output)
        return cls(*files, settings, rule_job.threads, placed=True)

    @property
    def digested(self) -> dict[str, str]:
        """Return the digest of the settings, without the code, for the metadata of tables."""
        settings = {name: v for name, v in self.settings.items() if name not in CODE}
        return {PARAMETERS: digest([json.dumps(settings, sort_keys=True, default=str)])[:16]}

    def write(
        self, table: artifacts.Table, frame: pd.DataFrame, values: Mapping[str, str]
    ) -> None:
        """Write `frame` to the output named like `table`, before the function has ended.

        If this output has several files, `values` selects one: it contains the file's values
        of ``table.file_columns``.
        """
        files = self.outputs[table.name]
        if not isinstance(files, str):
            files = files[self.settings[f"{table.name}_of"].index(values)]
        table.write(frame, files, {**values, **self.digested})


def _files(named: Any) -> dict[str, Files]:  # noqa: ANN401
    return {
        name: str(files) if isinstance(files, str) else [str(file) for file in files]
        for name, files in named.items()
    }


def paths(files: Files) -> list[str]:
    """Return a list of paths, also if `files` is one path."""
    return [files] if isinstance(files, str) else files


def run(function: Callable[..., Any], rule_job: Any) -> None:  # noqa: ANN401
    """Call `function` as the job that Snakemake describes, and log to the rule's log."""
    log_to(rule_job.log[0])
    provenance.log_maker()
    execute(function, Job.from_snakemake(rule_job))


def run_with(
    python: str | None,
    function: Callable[..., Any],
    script: str,
    rule_job: Any,  # noqa: ANN401
) -> None:
    """Call `run`, or let this process become the `python` of another environment that does.

    The function has the name of the `script`.
    """
    if python is None:
        run(function, rule_job)
        return
    job = asdict(Job.from_snakemake(rule_job))
    encoded = json.dumps([script, str(rule_job.log[0]), job])
    program = (
        "import sys; from persistcal.store.jobs import run_encoded as run; run(sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    os.execve(python, [python, "-u", "-c", program, encoded], environment)


def run_encoded(encoded: str) -> None:
    """Run the job that `run_with` describes."""
    script, log_path, job = json.loads(encoded)
    log_to(log_path)
    function = function_of(script)
    provenance.log_maker()
    execute(function, Job(**job))


def execute(function: Callable[..., Any], job: Job) -> None:
    """Call `function` with the inputs and settings of `job`, and write its return values.

    If the script imports torch, it uses the job's threads, so that parallel jobs do not compete
    for cores. Some parameters are special:

    - A parameter with a class that has `of_job`, such as `Progress`, receives a context that
      begins before the call and ends after the outputs are written.
    - A dataclass receives each field from the input of the same name. As for parameters, a
      field with a default can lack its input.
    """
    if torch := sys.modules.get("torch"):  # numeric scripts never import it
        torch.set_num_threads(max(1, job.threads))  # a job that only waits has none
    hints = get_type_hints(function, include_extras=True)
    parameters = signature(function).parameters
    inputs = {  # for Snakemake, a missing input is []
        name: files
        for name, files in job.inputs.items()
        if name in parameters and (files or parameters[name].default is Parameter.empty)
    }
    with ExitStack() as contexts:
        arguments: dict[str, Any] = {}
        for name, parameter in parameters.items():
            kind = _present(hints[name])
            keyword = parameter.kind is Parameter.KEYWORD_ONLY
            if kind is Job:
                arguments[name] = job
            elif hasattr(kind, "of_job"):
                context = kind.of_job(replace(job, inputs=inputs))
                arguments[name] = contexts.enter_context(context)
            elif name == "threads":
                arguments[name] = job.threads
            elif keyword and name in job.settings:
                arguments[name] = _setting(kind, job.settings[name])
            elif not keyword and name in inputs:
                arguments[name] = _read(kind, inputs[name], placed=job.placed)
            elif not keyword and is_dataclass(kind) and not hasattr(kind, "read"):
                arguments[name] = _read_each(kind, job.inputs, placed=job.placed)
            elif parameter.default is Parameter.empty:
                lacking = "params or wildcards" if keyword else "inputs"
                raise TypeError(
                    f"{function.__name__} needs {name!r}, which its rule's {lacking} lack."
                )
        _write_all(hints["return"], function(**arguments), job)


def _present(kind: Any) -> Any:  # noqa: ANN401
    """Return the annotation without its option None."""
    kinds = [option for option in get_args(kind) if option is not NoneType]
    return kinds[0] if NoneType in get_args(kind) and len(kinds) == 1 else kind


def _setting(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Return a setting; a dictionary becomes the annotated dataclass or NamedTuple."""
    if isinstance(value, Mapping) and get_origin(kind) in (dict, Mapping):
        _, element = get_args(kind)
        return {name: _setting(element, part) for name, part in value.items()}
    if not isinstance(value, Mapping) or not (is_dataclass(kind) or hasattr(kind, "_fields")):
        return value
    hints = get_type_hints(kind)
    return kind(**{name: _setting(_present(hints[name]), part) for name, part in value.items()})


def _read(kind: Any, files: Files, *, placed: bool) -> Any:  # noqa: ANN401
    """Return the content of `files`, as the annotation `kind` specifies."""
    for table in getattr(kind, "__metadata__", ()):
        return artifacts.read_files(files, table, placed=placed)
    if not isinstance(files, str):
        [kind] = get_args(kind)
        return [_read(kind, file, placed=placed) for file in files]
    return kind.read(files) if hasattr(kind, "read") else kind(files)


def _read_each(kind: Any, inputs: Mapping[str, Files], *, placed: bool) -> Any:  # noqa: ANN401
    """Return a dataclass with each field read from the input of the same name."""
    hints, read = get_type_hints(kind, include_extras=True), {}
    for field in fields(kind):
        name, optional = field.name, field.default is not MISSING
        if inputs.get(name) or (name in inputs and not optional):
            read[name] = _read(_present(hints[name]), inputs[name], placed=placed)
        elif not optional:
            raise TypeError(f"{kind.__name__} needs {name!r}, which its rule's inputs lack.")
    return kind(**read)


def _write_all(returned: Any, result: Any, job: Job) -> None:  # noqa: ANN401
    """Write the result of a function to the outputs; `returned` is its annotation."""
    if returned is NoneType or not job.outputs:
        return
    several, kinds = get_origin(returned) is tuple, get_args(returned)
    if hasattr(returned, "_fields"):
        several, kinds = True, tuple(get_type_hints(returned, include_extras=True).values())
    kinds = kinds if several else (returned,) * len(job.outputs)
    results: Iterable[Any] = result if several else [result] * len(job.outputs)
    for kind, value, (name, files) in zip(kinds, results, job.outputs.items(), strict=True):
        if isinstance(files, str):
            _write(kind, value, files, job)
        elif isinstance(value, pd.DataFrame):
            for file, values in zip(files, job.settings[f"{name}_of"], strict=True):
                is_in_file = (value[list(values)] == pd.Series(values)).all(axis=1)
                _write(kind, value[is_in_file], file, job, values)
        else:
            [element] = get_args(kind)
            for file, content in zip(files, value, strict=True):
                _write(element, content, file, job)


def _write(kind: Any, value: Any, file: str, job: Job, values: Mapping[str, Any] = {}) -> None:  # noqa: ANN401
    """Write a result to its file, as the annotation `kind` specifies.

    `values` are the file's own, which replace settings.
    """
    for table in getattr(kind, "__metadata__", ()):
        table.write(value, file, {**job.settings, **values, **job.digested})
        return
    value.write(file) if hasattr(kind, "write") else write_whole(file, value)


def log_to(path: FilePath) -> None:
    """Log to the file `path` and to standard error, where lines begin with the job's name.

    For an uncaught exception, the file contains the traceback and standard error one line.
    Messages of GPU errors are replaced by an explanation.
    """
    write_whole(path, "")  # makes its folder, too
    terminal = logging.StreamHandler()
    job = job_of(str(path)).replace("%", "%%")
    line = f"%(asctime)s {job} %(levelname)s %(message)s"
    terminal.setFormatter(logging.Formatter(line, "%H:%M:%S"))
    terminal.addFilter(lambda entry: entry.name not in (UNCAUGHT, provenance.__name__))
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        handlers=[logging.FileHandler(path, mode="w"), terminal],
        force=True,
    )
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs each glyph of a figure

    def record(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        message = explain(error)
        logging.getLogger(UNCAUGHT).critical("%s", message, exc_info=(kind, error, trace))
        print(f"{kind.__name__}: {message} (traceback in {path})", file=sys.stderr)

    sys.excepthook = record


def job_of(path: str) -> str:
    """Return the name of a job: the path of its log below the folder of logs.

    >>> job_of("results/logs/score_answers/atlas/p40/own.log"), job_of("a/rule.log")
    ('score_answers/atlas/p40/own', 'rule')
    """
    parts = path.removesuffix(".log").split("/")
    return "/".join(parts[parts.index("logs") + 1 :]) if "logs" in parts else parts[-1]


def read_benchmarks(logs: FilePath) -> list[tuple[str, pd.DataFrame]]:
    """Return the rule and the table of each benchmark in a folder of logs."""
    paths = sorted(Path(logs).rglob("*.tsv"))
    rules = [path.relative_to(logs).parts[0].removesuffix(".tsv") for path in paths]
    return [(rule, pd.read_csv(p, sep="\t")) for rule, p in zip(rules, paths, strict=True)]


def is_full(error: BaseException) -> bool:
    """Return whether an error means that a GPU's memory is full."""
    if not isinstance(error, RuntimeError):
        return False
    return type(error).__name__ == "OutOfMemoryError" or any(s in str(error) for s in FULL)


def explain(error: BaseException) -> str:
    """Return the message of an error; for GPU errors, their cause and remedy."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if is_full(error):
        return (
            "The GPU's memory holds the model, but not its computation even for the "
            "smallest batch; use a larger GPU, or several that share the model, or a smaller "
            f"batch_size ({lines[0]})."
        )
    # DistBackendError and similar ones; the last line of NCCL is more precise than the first.
    if isinstance(error, RuntimeError) and "NCCL" in str(error):
        return (
            "The processes of this training do not reach each other over NCCL; each needs a "
            "GPU of its own and a network to the others, and NCCL_DEBUG=INFO shows more "
            f"({'; '.join(dict.fromkeys([lines[0], lines[-1]]))})."
        )
    return str(error)

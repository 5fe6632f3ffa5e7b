"""A rule's records and tracebacks in its log, and how long jobs took."""

import logging
import sys
from types import TracebackType

import pandas as pd

from persistcal.store.files import FilePath, files_below, inside, write_whole
from persistcal.store.gpu_errors import explain

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

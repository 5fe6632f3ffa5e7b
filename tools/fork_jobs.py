"""Snakemake on one machine, its jobs forked from one Python that has imported the packages.

`python tools/fork_jobs.py …` takes the arguments of `snakemake` and makes the same files.
The import of torch takes some seconds, which is most of a job with a small model. Here the
packages are imported once, and each job is forked from that process. Jobs with a separate
software environment start a new Python.
"""

import multiprocessing
import os
import runpy
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from snakemake.script import PythonScript

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HERE = str(Path(__file__).parent)
JOBS = multiprocessing.get_context("forkserver")
# To start a process also asks how others ended, which only one thread may do at a time.
LOCK = threading.Lock()


@cache
def start_server() -> None:
    """Start the Python that jobs are forked from, once; it imports `warm_up`."""
    python_path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([HERE, *([python_path] if python_path else [])])
    forkserver.ensure_running()
    del os.environ["PYTHONPATH"]
    if python_path:
        os.environ["PYTHONPATH"] = python_path


def run_script(
    path: str, threads: int, environment: Mapping[str, str], observed: "Connection"
) -> None:
    """Run the script at `path` as Python would, hook for uncaught exceptions included.

    The script starts after `observed` is set.
    """
    observed.recv()
    os.environ.clear()
    os.environ.update(environment)
    os.environ.update(dict.fromkeys(THREAD_LIMITS, str(threads)))
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def main() -> None:
    """Run Snakemake, with forks where it would start Python."""
    # Not above: each job imports this file again, and Snakemake takes a second.
    from snakemake.benchmark import benchmarked
    from snakemake.cli import main as snakemake
    from snakemake.script import PythonScript

    start_python = PythonScript.execute_script

    def fork_script(script: "PythonScript", path: str, edit: bool = False) -> None:
        """Run the file that Snakemake has written for a job."""
        if script.conda_env or script.container_img or script.env_modules:
            start_python(script, path, edit=edit)
            return
        with LOCK:
            start_server()
            environment = dict(os.environ)  # not while the server starts, which changes it
            begin, begun = JOBS.Pipe(duplex=False)
            job = JOBS.Process(
                target=run_script, args=(path, script.threads, environment, begin)
            )
            job.start()
        status = None
        # A job that had already ended could not be found.
        with begin, begun, benchmarked(job.pid, script.bench_record):
            begun.send(None)
            while status is None:
                time.sleep(0.02)
                with LOCK:
                    status = job.exitcode
        if status:
            raise RuntimeError(f"{script.path} ended with exit status {status}; see its log.")

    # Libraries read these at import; each job sets torch's threads again.
    for name in THREAD_LIMITS:
        os.environ.setdefault(name, "1")
    JOBS.set_forkserver_preload(["warm_up"])
    PythonScript.execute_script = fork_script
    if not {"-n", "--dry-run", "--dryrun"} & {*sys.argv}:
        start_server()  # imports while Snakemake reads the rules
    snakemake()


if __name__ == "__main__":
    main()

"""Snakemake on one machine, its jobs forked from one Python that has imported the packages.

`python tools/fork_jobs.py …` takes the arguments of `snakemake` and makes the same files.
To import torch and what builds on it takes some seconds, which for a small model is most of
a job. Here that happens once: each job is a process of its own, forked from one that holds
the packages. Jobs with a software environment of their own start Python as ever.
"""

import multiprocessing
import os
import runpy
import sys
import threading
import time

from snakemake.benchmark import benchmarked
from snakemake.cli import main
from snakemake.script import PythonScript

PACKAGES = [
    "__main__",
    "matplotlib.pyplot",
    "pandas",
    "peft",
    "scipy.stats",
    "sklearn.isotonic",
]
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
JOBS = multiprocessing.get_context("forkserver")
# To start a process also asks how others ended, which only one thread may do at a time.
LOCK = threading.Lock()
start_python = PythonScript.execute_script


def run_script(path: str, threads: int) -> None:
    """Run the script at `path` as Python would, hook for uncaught exceptions included."""
    os.environ.update(dict.fromkeys(THREAD_LIMITS, str(threads)))
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def fork_script(script: PythonScript, path: str, edit: bool = False) -> None:
    """Run the file that Snakemake has written for a job, where it would start Python."""
    if script.conda_env or script.container_img or script.env_modules:
        start_python(script, path, edit=edit)
        return
    job = JOBS.Process(target=run_script, args=(path, script.threads))
    with LOCK:
        job.start()
    status = None
    with benchmarked(job.pid, script.bench_record):
        while status is None:
            time.sleep(0.02)
            with LOCK:
                status = job.exitcode
    if status:
        raise RuntimeError(f"{script.path} ended with exit status {status}; see its log.")


if __name__ == "__main__":
    # Libraries read these when they are imported; torch is told again by each job.
    for name in THREAD_LIMITS:
        os.environ.setdefault(name, "1")
    JOBS.set_forkserver_preload(PACKAGES)
    PythonScript.execute_script = fork_script
    main()

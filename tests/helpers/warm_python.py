"""Runs of Snakemake or of a module, forked from a Python that has imported much.

The import of Snakemake, torch and their users takes seconds of a core, and the tests run
Snakemake some hundred times. A fork server of `multiprocessing` therefore imports them once.
It imports no module of the project except `tools/`, so that a run reads the project's present
code. A run of Snakemake forks its job server, as `tools/fork_jobs.py` needs it, before
Snakemake starts threads: a fork would lose them.
"""

import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import types
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
TOOLS = str(ROOT / "tools")
ONE_THREAD = dict.fromkeys(["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")
# Packages of some tests' studies; `warm_up` imports the packages of all studies
IMPORTED = ["datasets", "openai", "sentence_transformers"]
FORKS = multiprocessing.get_context("forkserver")
# No run of a test reads the Hub. The libraries read both variables at their import.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.gettempdir() + "/persistcal-tests-no-hub"}
_began_with: dict[str, str] = {}  # the server's environment


def ensure_running(environment):
    """Start a server if its environment, which libraries read at their import, has changed."""
    if _began_with != environment:
        forkserver._forkserver._stop()
        _began_with.clear()
        _began_with.update(environment)
        FORKS.set_forkserver_preload([*IMPORTED, "snakemake.cli", "warm_up"])
        path = os.pathsep.join(filter(None, [TOOLS, environment.get("PYTHONPATH")]))
        with mock.patch.dict(os.environ, {**environment, "PYTHONPATH": path}, clear=True):
            forkserver.ensure_running()


def start(module, arguments, streams, folder=ROOT, **changes):
    """Start a module, or "snakemake", as the leader of a new process group.

    It runs in `folder` on one thread, with the present environment and `changes` of it, and
    appends its output and its errors to the files `streams`.
    """
    environment = {**ONE_THREAD, **os.environ, **OFFLINE, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    # A library reads a key only when it sends a request.
    ensure_running({k: v for k, v in environment.items() if not k.endswith("_KEY")})
    arguments = [str(argument) for argument in arguments]
    request = module, arguments, list(map(str, streams)), str(folder), environment | changes
    process = FORKS.Process(target=be, args=request)
    process.start()
    return process


def kill(process):
    """Kill a started process and all processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def run(module, arguments, timeout, folder=ROOT, **changes):
    """Run a module, or "snakemake"; like `subprocess.run`, with its output as text."""
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        streams = [output.name, output.name if module == "snakemake" else errors.name]
        process = start(module, arguments, streams, folder, **changes)
        process.join(timeout)
        if process.exitcode is None:
            kill(process)
            raise TimeoutError(f"no end after {timeout} s")
        texts = [Path(file.name).read_text() for file in (output, errors)]
    return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def run_words(words, **options):
    """Replace `subprocess.run` of `[python, "-m", module, ...]` in the project's root."""
    assert words[:2] == [sys.executable, "-m"]
    return run(words[2], words[3:], options.get("timeout", 600))


def be(module, arguments, streams, folder, environment):
    """Become the requested program, in a new process group."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    # Entries that pytest has added are left out.
    installed = [
        p for p in sys.path if "site-packages" in p or ROOT not in Path(p, "*").parents
    ]
    first = TOOLS if module == "snakemake" else str(ROOT)
    further = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [first, *filter(None, further), *installed]
    sys.argv = [module, *arguments]
    if module == "snakemake":
        be_snakemake()
    else:
        # Processes that a module spawns name its classes by both.
        sys.modules["__main__"] = sys.modules["__mp_main__"] = types.ModuleType("__main__")
        runpy._run_module_as_main(module, alter_argv=False)


def be_snakemake():
    """Run `fork_jobs`, its jobs forked from here."""
    from multiprocessing import util

    import fork_jobs

    sys.modules["__main__"] = fork_jobs
    with mock.patch.object(util, "spawnv_passfds", fork_server):
        fork_jobs.start_server()
    fork_jobs.main()


def fork_server(_, arguments, kept):
    """Start a fork server like `spawnv_passfds`, but by a fork that needs no imports."""
    if pid := os.fork():
        return pid
    first = 3
    for fd in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
        os.closerange(first, fd)
        first = fd + 1
    forkserver._forkserver._lock = threading.Lock()  # the parent's lock is held
    try:
        exec(arguments[-1], {})
    finally:
        os._exit(0)

"""Runs of Snakemake or of a module, forked from a Python that has imported much.

The import of Snakemake, torch and their users takes seconds of a core, and the tests run
Snakemake some hundred times. A server, which all workers of a run share, therefore imports
them once. It imports no module of the project except `tools/`, so that a run reads the
project's present code.
"""

import gc
import hashlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from tools import fork_jobs

ROOT = Path(__file__).parents[2]
TOOLS = str(ROOT / "tools")
ONE_THREAD = dict.fromkeys(["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")
# No run of a test reads the Hub. The libraries read both variables at their import.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.gettempdir() + "/persistcal-tests-no-hub"}
LOCK = tempfile.gettempdir() + "/persistcal-tests.lock"
_servers: dict[str, socket.socket] = {}  # connections, by address


def server(environment):
    """Return the address of a server with the environment, which libraries read at import."""
    run = environment.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    # A library reads a key only when it sends a request.
    kept = {
        name: value
        for name, value in environment.items()
        if not name.endswith("_KEY") and not name.startswith("PYTEST_")
    }
    digest = hashlib.sha256(json.dumps([run, kept], sort_keys=True).encode()).hexdigest()
    address = f"{tempfile.gettempdir()}/persistcal-{digest[:16]}"
    if address not in _servers:
        with FileLock(LOCK):
            _servers[address] = _connected(address) or _started(address, kept)
    return address


def _connected(address):
    """Return a connection to the server, if it runs."""
    user = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        user.connect(address)
        user.sendall(b"null\n")
        if user.recv(64):
            return user
    user.close()
    return None


def _started(address, environment):
    """Start a server and return a connection to it."""
    Path(address).unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(128)
        number = listener.fileno()
        subprocess.Popen(
            [sys.executable, __file__, str(number)],
            env={**environment, "PYTHONPATH": path},
            pass_fds=[number],
            start_new_session=True,
        )
    return _connected(address)


def start(module, arguments, streams, folder=ROOT, **changes):
    """Start a module, or "snakemake", as the leader of a new process group.

    It runs in `folder` on one thread, with the present environment and `changes` of it, and
    appends its output and its errors to the files `streams`.
    """
    environment = {**ONE_THREAD, **os.environ, **OFFLINE, "OMP_NUM_THREADS": "1"}
    arguments, streams = ([str(word) for word in words] for words in (arguments, streams))
    request = module, arguments, streams, str(folder), environment | changes
    process = fork_jobs.Fork(server(environment), *request)
    process.begin()
    return process


def kill(process):
    """Kill a started process and all processes of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.join(0) is None:
        os.kill(process.pid, signal.SIGKILL)
        process.join()


def run(module, arguments, timeout, folder=ROOT, **changes):
    """Run a module, or "snakemake"; like `subprocess.run`, with its output as text."""
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        streams = [output.name, output.name if module == "snakemake" else errors.name]
        process = start(module, arguments, streams, folder, **changes)
        if (status := process.join(timeout)) is None:
            kill(process)
            raise TimeoutError(f"no end after {timeout} s")
        texts = [Path(file.name).read_text() for file in (output, errors)]
    return subprocess.CompletedProcess(arguments, status, *texts)


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
    installed = [
        p for p in sys.path if "site-packages" in p or ROOT not in Path(p, "*").parents
    ]
    first = TOOLS if module == "snakemake" else str(ROOT)
    further = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [first, *filter(None, further), *installed]
    sys.argv = [module, *arguments]
    if module == "snakemake":
        fork_jobs.main()
    else:
        # Processes that the module spawns name its classes by this module.
        names = sys.modules["__mp_main__"] = types.ModuleType("__mp_main__")
        names.__getattr__ = lambda name: getattr(sys.modules["__main__"], name)
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.insert(0, TOOLS)
    gc.disable()
    # Packages of some tests' studies; `warm_up` imports the packages of all studies.
    import datasets  # noqa: F401
    import nbformat  # noqa: F401
    import openai  # noqa: F401
    import requests  # noqa: F401
    import sentence_transformers  # noqa: F401
    import smart_open  # noqa: F401
    import snakemake.benchmark
    import snakemake.cli
    import warm_up  # noqa: F401
    import yte  # noqa: F401
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    snakemake.cli.get_argument_parser()  # finds the plugins
    # Runs of cold Pythons draw PDFs, a tenth of a run's time, and so do tests of figures.
    FigureCanvasPdf.print_pdf = lambda _, file, **options: file.write(b"%PDF-1.4\n%%EOF\n")
    # Snakemake looks at the memory of a job often, which takes a twelfth of a run.
    snakemake.benchmark.BENCHMARK_INTERVAL_SHORT = snakemake.benchmark.BENCHMARK_INTERVAL

    listener = socket.socket(fileno=int(sys.argv[1]))
    fork_jobs.serve(listener, be)
    Path(listener.getsockname()).unlink(missing_ok=True)
    os._exit(0)  # the end of torch and its users takes a second

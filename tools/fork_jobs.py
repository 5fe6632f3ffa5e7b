"""Snakemake on one machine, its jobs forked from one Python that has imported the packages.

`python tools/fork_jobs.py …` takes the arguments of `snakemake` and makes the same files.
The import of torch takes some seconds, which is most of a job with a small model. Here the
packages are imported once, and each job is forked from that process. Jobs with a separate
software environment start a new Python.
"""

import gc
import json
import multiprocessing
import os
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snakemake.script import PythonScript

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HERE = str(Path(__file__).parent)
FORKS = multiprocessing.get_context("fork")


class Fork:
    """A process that a server forks; it has an id at once and starts with `begin`."""

    def __init__(self, address: str, *arguments: Any) -> None:  # noqa: ANN401
        """Ask the server for a process that calls its function with `arguments`."""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(address)
        self._lines = self._server.makefile("rw")
        print(json.dumps(arguments), file=self._lines, flush=True)
        self.pid = int(self._lines.readline())
        self._status: int | None = None

    def begin(self) -> None:
        """Let the process start."""
        print(file=self._lines, flush=True)

    def join(self, timeout: float | None = None) -> int | None:
        """Return the exit status, or None if the process still runs after the timeout."""
        if self._status is None and wait([self._server], timeout):
            with self._server, self._lines:
                self._status = int(self._lines.readline())
        return self._status


def serve(listener: socket.socket, function: Callable[..., None]) -> None:
    """Fork a process for each request, as long as somebody uses this server.

    A connection asks for a process with the arguments of `function` in JSON, and receives its
    id and its exit status. A connection that asks for null is a user.
    """
    gc.freeze()  # what is imported is never garbage, and a fork that looked would copy it
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    awake, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())  # each end of a process writes there
    users: list[socket.socket] = []
    forks: list[tuple[BaseProcess, socket.socket]] = []
    while True:
        for ready in wait([listener, awake, *users]):
            if ready is listener:
                connection, _ = listener.accept()
                with connection.makefile() as lines:
                    arguments = json.loads(lines.readline())
                if arguments is None:
                    users.append(connection)
                    connection.sendall(b"welcome\n")
                    continue
                fork = FORKS.Process(target=_be, args=(connection, function, arguments))
                fork.start()
                forks.append((fork, connection))
                connection.sendall(f"{fork.pid}\n".encode())
            elif ready is awake:
                awake.recv(4096)
                for ended in [pair for pair in forks if pair[0].exitcode is not None]:
                    forks.remove(ended)
                    with ended[1] as connection, suppress(OSError):  # its client can be gone
                        connection.sendall(f"{ended[0].exitcode}\n".encode())
            elif isinstance(ready, socket.socket):
                users.remove(ready)
                if not users:
                    return


def _be(connection: socket.socket, function: Callable[..., None], arguments: Any) -> None:  # noqa: ANN401
    """Call the function if the client asks to begin."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with connection.makefile() as lines:
        begins = lines.readline()
    if begins:
        function(*arguments)


@contextmanager
def job_server() -> Iterator[str]:
    """Fork a server of jobs, which imports `warm_up`, and yield its address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as listener,
        socket.socket(socket.AF_UNIX) as user,
    ):
        listener.bind(address := f"{folder}/jobs")
        listener.listen(128)
        user.connect(address)
        user.sendall(b"null\n")
        if not os.fork():
            try:
                user.close()
                sys.path.insert(0, HERE)
                gc.disable()  # until `serve`: a tenth of the time of the imports
                import warm_up  # noqa: F401

                serve(listener, run_script)
            except Exception:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(0)
        listener.close()
        yield address


def run_script(path: str, threads: int, folder: str, environment: Mapping[str, str]) -> None:
    """Run the script at `path` as Python would, hook for uncaught exceptions included."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.environ.update(dict.fromkeys(THREAD_LIMITS, str(threads)))
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def run_snakemake(jobs: str) -> None:
    """Run Snakemake, with forks of the server at the address `jobs` instead of new Pythons."""
    # Not above: the server of jobs is forked before, without Snakemake and its threads.
    from snakemake.benchmark import benchmarked
    from snakemake.cli import main as snakemake
    from snakemake.script import PythonScript

    start_python = PythonScript.execute_script

    def fork_script(script: "PythonScript", path: str, edit: bool = False) -> None:
        """Run the file that Snakemake has written for a job."""
        if script.conda_env or script.container_img or script.env_modules:
            start_python(script, path, edit=edit)
            return
        job = Fork(jobs, path, script.threads, str(Path.cwd()), dict(os.environ))
        # A job that had already ended could not be observed, nor is one without a benchmark.
        with benchmarked(bool(script.bench_record) and job.pid, script.bench_record):
            job.begin()
            status = job.join()
        if status:
            raise RuntimeError(f"{script.path} ended with exit status {status}; see its log.")

    PythonScript.execute_script = fork_script
    snakemake()


def main() -> None:
    """Run Snakemake and its jobs; imports for jobs are made while Snakemake reads the rules."""
    # Libraries read these at import; each job sets torch's threads again.
    for name in THREAD_LIMITS:
        os.environ.setdefault(name, "1")
    if {"-n", "--dry-run", "--dryrun"} & {*sys.argv}:  # which starts no job
        from snakemake.cli import main as snakemake

        snakemake()
    with job_server() as jobs:
        run_snakemake(jobs)


if __name__ == "__main__":
    main()

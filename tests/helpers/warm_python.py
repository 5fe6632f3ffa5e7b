"""A Python that has imported much, forked for each run of Snakemake or of a module.

To import Snakemake, torch and what builds on it takes seconds of a core, and the tests run
Snakemake some hundred times. So this is done once, in three processes one below the other:

- `main`, a program: it imports, reads a line of JSON for each run, forks, and answers with the
  pid and then the exit status. Libraries read the environment when they are imported, so
  another environment means another such Python (`run`).
- its fork, a run (`be`): `tools/fork_jobs.py`, which is Snakemake, or a module as by
  `python -m`. Of the project only `tools/` is imported before: a run reads it as it then is.
- a fork of the run, from which `fork_jobs` forks the jobs (`fork_server`): made before
  Snakemake starts threads, of which a fork would lose all but one.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from select import select

ROOT = Path(__file__).parents[2]
TOOLS = str(ROOT / "tools")


class WarmPython:
    """Such a Python, with the environment of one moment: libraries read it when imported."""

    def __init__(self, environment):
        self.environment = dict(environment)
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead, `select` would wait for
        )

    def run(self, module, arguments, timeout, folder=ROOT, **environment):
        """Run a module, or "snakemake"; like `subprocess.run`, with its output as text.

        It runs in `folder`, and with other variables if `environment` has some.
        """
        arguments = [str(argument) for argument in arguments]
        with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
            where = {"folder": str(folder), "environment": environment}
            request = [module, arguments, output.name, errors.name, where]
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            pid = self._answer(300)  # it imports first
            try:
                status = self._answer(timeout)
            except TimeoutError:
                os.killpg(pid, signal.SIGKILL)
                self._answer(60)
                raise
            said = [Path(file.name).read_text() for file in (output, errors)]
        return subprocess.CompletedProcess(arguments, status, *said)

    def _answer(self, timeout):
        if not select([self.process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no end after {timeout} s")
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


_warm: list[WarmPython] = []


def run(module, arguments, timeout, **how):
    """`WarmPython.run` with the environment of now, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    if not _warm or _warm[0].environment != environment:
        while _warm:
            _warm.pop().close()
        _warm.append(WarmPython(environment))
    return _warm[0].run(module, arguments, timeout, **how)


def run_words(words, **options):
    """Stand in for `subprocess.run` of `[python, "-m", module, ...]` in the project's root."""
    assert words[:2] == [sys.executable, "-m"]
    return run(words[2], words[3:], options.get("timeout", 600))


def fork_server(_, arguments, kept):
    """Do what `spawnv_passfds` does for a fork server, without a Python that imports anew."""
    from multiprocessing import forkserver

    if pid := os.fork():
        return pid
    first = 3
    for fd in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
        os.closerange(first, fd)
        first = fd + 1
    forkserver._forkserver._lock = threading.Lock()  # the starter holds the one of before
    try:
        exec(arguments[-1], {})
    finally:
        os._exit(0)


def be_snakemake(arguments):
    """Run `fork_jobs`, its jobs forked from here."""
    from multiprocessing import resource_tracker, util

    import fork_jobs

    sys.argv = [fork_jobs.__file__, *arguments]
    resource_tracker.ensure_running()
    # At once, while there are no threads, of which a fork would lose all but one.
    spawn, util.spawnv_passfds = util.spawnv_passfds, fork_server
    fork_jobs.start_server()
    util.spawnv_passfds = spawn
    fork_jobs.main()


def be_module(name, arguments):
    """Do what `python -m` does in the project's root."""
    sys.path[0] = str(ROOT)
    sys.argv = [name, *arguments]
    spec = importlib.util.find_spec(name)
    in_main = vars(sys.modules["__main__"])  # where it stays: what is pickled names it
    in_main.update(__spec__=spec, __file__=spec.origin, __doc__=None)
    exec(spec.loader.get_code(name), in_main)


def be(module, arguments, output, errors, where):
    """Be what is asked for; the exit status."""
    os.setsid()
    os.chdir(where["folder"])
    os.environ.update(where["environment"])
    sys.path[1:1] = filter(None, where["environment"].get("PYTHONPATH", "").split(os.pathsep))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for path, stream in ((output, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY), stream)
    if module == "snakemake":
        os.dup2(1, 2)
    try:
        be_snakemake(arguments) if module == "snakemake" else be_module(module, arguments)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def main():
    """Import, then fork for each request until there are no more."""
    sys.path[0] = TOOLS
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # besides what all studies import, what some of the tests' do
    import datasets  # noqa: F401
    import matplotlib.backends.backend_pdf  # noqa: F401
    import openai  # noqa: F401
    import sentence_transformers  # noqa: F401
    import snakemake.cli  # noqa: F401
    import warm_up  # noqa: F401

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, file=answers)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers)
            continue
        status = 1
        try:
            answers.close()
            status = be(*json.loads(line))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


if __name__ == "__main__":
    main()

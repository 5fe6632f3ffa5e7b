"""A Python that has imported Snakemake and what jobs need, forked for each run of the tests.

As a program it reads requests, a line of JSON each, and answers with the exit status of the
run: `main` of `tools/fork_jobs.py` in a process of its own, whose jobs are forked from another.
Nothing of the project is imported but that file, so that a run reads it as it then is.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from select import select

TOOLS = str(Path(__file__).parents[2] / "tools")


class WarmSnakemake:
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

    def run(self, arguments, output, timeout):
        """Run with the arguments of `snakemake`, its output in a file; the exit status."""
        request = {"arguments": [str(a) for a in arguments], "output": str(output)}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        pid = self._answer(300)  # it imports first
        try:
            return self._answer(timeout)
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            self._answer(60)
            raise

    def _answer(self, timeout):
        if not select([self.process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no end after {timeout} s")
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


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
    exec(arguments[-1], {})
    os._exit(0)


def run(arguments, output):
    """Be Snakemake; the exit status."""
    from multiprocessing import resource_tracker, util

    import fork_jobs

    os.setsid()
    with Path(output).open("wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = [fork_jobs.__file__, *arguments]
    resource_tracker.ensure_running()
    # At once, while there are no threads, of which a fork would lose all but one.
    spawn, util.spawnv_passfds = util.spawnv_passfds, fork_server
    fork_jobs.start_server()
    util.spawnv_passfds = spawn
    try:
        fork_jobs.main()
    except SystemExit as ended:
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
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            status = run(**json.loads(line))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


if __name__ == "__main__":
    main()

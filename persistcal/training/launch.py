"""Start the ranks of a computation, log their output, and end them together.

CUDA reads CUDA_VISIBLE_DEVICES at the first query for GPUs. So the variable is set before a
rank's Python starts, and a rank imports this module without torch. `torchrun` is not used,
because its ranks survive if it is killed, and because it reports only status 1 for a dead rank.
"""

import dataclasses
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from persistcal.store.jobs import Job, execute, log_to
from persistcal.store.provenance import log_maker

log = logging.getLogger(__name__)

GRACE_S = 10.0  # between asking a process to end and ending it
SRUN_SAYS = "srun: error: "


def run_on_ranks(
    function: Callable[..., Any],
    script: str,
    rule_job: Any,  # noqa: ANN401
    *,
    most: int,
) -> None:
    """Run `function` like `persistcal.store.jobs.run`, on the rule's number of ranks.

    The number is at most `most` and, if there are GPUs, at most their number.
    """
    log_to(rule_job.log[0])
    log_maker()
    resources = rule_job.resources
    n_ranks, n_nodes = resources.get("ranks", 1), resources.get("nodes", 1)
    n_gpus = len(visible_gpus()) * n_nodes
    execute_on_ranks(
        function,
        script,
        Job.from_snakemake(rule_job),
        n_ranks=min(n_ranks, most, n_gpus or n_ranks),
        n_nodes=n_nodes,
        timeout_min=resources.rank_timeout_min,
    )


def execute_on_ranks(
    function: Callable[..., Any],
    script: str,
    job: Job,
    *,
    n_ranks: int,
    n_nodes: int = 1,
    timeout_min: float,
) -> None:
    """Execute the function of a script here, or in each of several ranks.

    The function has the name of the `script`, which is next to ``run_rank.py``. The settings of
    the job are JSON values. See `launch` and `ranks.join` for the other parameters.
    """
    if n_ranks == 1:
        execute(function, job)
        return
    program = str(Path(script).with_name("run_rank.py"))
    encoded = json.dumps([dataclasses.asdict(job), timeout_min])
    launch([program, script, encoded], n_ranks=n_ranks, n_nodes=n_nodes)


def launch(program: Sequence[str], *, n_ranks: int, n_nodes: int = 1) -> None:
    """Run a Python program as `n_ranks` ranks; if one fails, end the others.

    On one machine the ranks are child processes. On several machines srun starts them in the
    allocation of this process. All nodes run the same number of ranks and have the same number
    of GPUs. The program calls `end_with_parent`, then `read_srun` before it imports torch, and
    `persistcal.training.ranks.join`. It finds the package on this process's path.
    """
    if n_ranks % n_nodes:
        raise ValueError(
            f"{n_ranks} ranks cannot be spread equally over {n_nodes} nodes; ask for a "
            "multiple of the nodes."
        )
    root = str(Path(__file__).parents[2])
    found_at = [root, *os.environ.get("PYTHONPATH", "").split(":")]
    n_each = str(n_ranks // n_nodes)
    shared = {
        **os.environ,
        "PYTHONPATH": ":".join(filter(None, found_at)),
        # srun runs its first task on the first node, where the script of a job runs.
        "MASTER_ADDR": socket.gethostname() if n_nodes > 1 else "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "LOCAL_WORLD_SIZE": n_each,
    }
    command = [sys.executable, "-u", *program]
    gpus = visible_gpus()
    if n_nodes > 1:
        if gpus:  # for where SLURM does not name the GPUs of each node itself
            shared["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        sizes = [f"--nodes={n_nodes}", f"--ntasks={n_ranks}", f"--ntasks-per-node={n_each}"]
        calls = {"srun": (["srun", *sizes, "--kill-on-bad-exit=1", *command], shared)}
    else:
        calls = {}
        for n in range(n_ranks):
            of_rank = {"RANK": str(n), "LOCAL_RANK": str(n), "WORLD_SIZE": str(n_ranks)}
            if gpus:
                of_rank["CUDA_VISIBLE_DEVICES"] = ",".join(split_gpus(gpus, n, n_ranks))
            calls[f"rank {n}"] = (command, shared | of_rank)
    processes: dict[str, subprocess.Popen] = {}
    reader, writer = os.pipe()
    complaints: list[str] = []  # messages of srun, which ends with another status
    output = os.fdopen(reader, errors="replace")
    printed = threading.Thread(target=_log_lines, args=(output, complaints))
    printed.start()
    try:
        for name, (call, variables) in calls.items():
            processes[name] = subprocess.Popen(
                call, env=variables, stdin=subprocess.PIPE, stdout=writer, stderr=writer
            )
        failed = _first_failure(processes)
    finally:
        os.close(writer)
        _end(processes)
        printed.join(GRACE_S)
    if failed:
        failed = next(iter(complaints), failed)
        raise RuntimeError(f"{failed}; the others have been ended. The log says more above.")


def visible_gpus() -> Sequence[str]:
    """Return the GPUs of this process, by their names in CUDA_VISIBLE_DEVICES."""
    import torch

    n_gpus = torch.cuda.device_count()  # asks the driver's monitor, which does not start CUDA
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:n_gpus] if visible else [*map(str, range(n_gpus))]


def split_gpus(gpus: Sequence[str], rank: int, n_ranks: int) -> Sequence[str]:
    """Return the GPUs of one of `n_ranks` ranks: an equal share of neighbouring GPUs."""
    n_each = len(gpus) // n_ranks
    if n_each == 0:
        raise ValueError(
            f"{n_ranks} ranks on one machine need as many GPUs, and there are {len(gpus)}; "
            "ask for more GPUs or fewer ranks."
        )
    return gpus[rank * n_each : (rank + 1) * n_each]


def read_srun() -> None:
    """Set a rank's variables, with torchrun's names, and its GPUs if srun started it."""
    if "RANK" in os.environ:
        return
    names = {"RANK": "PROCID", "WORLD_SIZE": "NTASKS", "LOCAL_RANK": "LOCALID"}
    os.environ |= {
        name: os.environ[f"SLURM_{slurm_name}"] for name, slurm_name in names.items()
    }
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        rank, n_ranks = (int(os.environ[f"LOCAL_{name}"]) for name in ("RANK", "WORLD_SIZE"))
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(
            split_gpus(visible.split(","), rank, n_ranks)
        )


def end_with_parent() -> None:
    """End this process as soon as its parent has ended."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def _log_lines(output: IO[str], complaints: list[str]) -> None:
    """Log each line, and keep srun's complaints about tasks that fail."""
    with output:
        for line in output:
            log.info("%s", line.rstrip())
            if line.startswith(SRUN_SAYS):
                complaints.append(line.removeprefix(SRUN_SAYS).strip())


def _first_failure(processes: Mapping[str, subprocess.Popen]) -> str:
    """Wait for all processes or for a failure; return the failed rank and the reason."""
    while True:
        ended = {name: process.poll() for name, process in processes.items()}
        # A killed process makes others fail that wait for it, so it is looked for first.
        for name, status in sorted(ended.items(), key=lambda item: item[1] or 0):
            if status is not None and status < 0:
                return f"{name} was ended by {signal.Signals(-status).name}"
            if status:
                return f"{name} ended with status {status}"
        if all(status == 0 for status in ended.values()):
            return ""
        time.sleep(0.1)


def _end(processes: Mapping[str, subprocess.Popen]) -> None:
    for process in processes.values():
        process.terminate()
    deadline = time.monotonic() + GRACE_S
    for process in processes.values():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin:
            process.stdin.close()
